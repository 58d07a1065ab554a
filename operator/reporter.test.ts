import { expect, test } from 'vitest'
import { Region } from '../crds/region.ts'
import { conditionOf, notReady, ready } from '../store/conditions.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import { REGION_ID } from '../test/builders/resources.ts'
import { createReporter } from './reporter.ts'

async function stage() {
  const opened = await openTemporaryStore()
  const { store } = opened
  const key = { name: 'here' }
  const region = await store.create(Region, { metadata: key, spec: { id: REGION_ID, regionId: 1, name: 'here' } })
  const report = createReporter({ store, now: () => new Date('2026-01-01T00:00:00Z') })
  const status = async () => conditionOf((await store.get(Region, key)) ?? {}, 'Ready')
  return { store, key, region, report, status, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

test('a report over an outdated status is a conflict', async () => {
  await using it = await stage()
  await it.report(Region, it.region, ready('Serving', 'by the successor'))
  await expect(it.report(Region, it.region, notReady('NoMotors', 'by who was held up'))).rejects.toMatchObject({
    code: 'conflict',
  })
  expect(await it.status()).toMatchObject({ status: 'True', reason: 'Serving' })
})

test('a changed spec or label is no conflict: the condition names its generation', async () => {
  await using it = await stage()
  await it.store.mergePatch(Region, it.key, { metadata: { labels: { a: 'b' } }, spec: { name: 'there' } })
  await it.report(Region, it.region, ready('Serving', 'as it was'))
  expect(await it.status()).toMatchObject({ status: 'True', observedGeneration: 1 })
})

test('a report about a deleted object writes nothing', async () => {
  await using it = await stage()
  await it.store.delete(Region, it.key)
  await it.report(Region, it.region, ready('Serving', 'as it was'))
  expect(await it.store.get(Region, it.key)).toBeUndefined()
})

test('a report about a replaced object does not change its successor', async () => {
  await using it = await stage()
  await it.store.delete(Region, it.key)
  await it.store.create(Region, { metadata: it.key, spec: { id: REGION_ID, regionId: 2, name: 'there' } })
  await expect(it.report(Region, it.region, ready('Serving', 'as it was'))).rejects.toMatchObject({ code: 'conflict' })
  expect(await it.status()).toBeUndefined()
})
