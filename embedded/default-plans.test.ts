import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { Plan, PlanSpec } from '../crds/plan.ts'
import { keyOf } from '../store/port.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import { DEFAULT_PLANS, ensurePlans } from './default-plans.ts'

const Values = z.object({ plans: z.array(z.object({ name: z.string(), spec: PlanSpec })) })

const comparable = (spec: z.output<typeof PlanSpec>) => ({ ...spec, engines: spec.engines.toSorted() })

test('the chart has the same plans', async () => {
  const { plans } = Values.parse(parse(await readFile(new URL('../charts/mooring/values.yaml', import.meta.url), 'utf8')))
  const expected = DEFAULT_PLANS.map(({ metadata, spec }) => ({ name: metadata.name, spec: comparable(PlanSpec.parse(spec)) }))
  expect(plans.map(({ name, spec }) => ({ name, spec: comparable(spec) }))).toEqual(expected)
})

test('plans are created once: one that an administrator deletes stays deleted', async () => {
  await using place = await openTemporaryStore()
  const { store } = place
  await ensurePlans(store)
  const { items } = await store.list(Plan)
  expect(items.map(({ metadata }) => metadata.name).toSorted()).toEqual(['large', 'medium', 'small'])
  const [first] = items
  if (!first) expect.fail('there is no plan')
  await store.delete(Plan, keyOf(first))
  await ensurePlans(store)
  expect((await store.list(Plan)).items).toHaveLength(2)
})
