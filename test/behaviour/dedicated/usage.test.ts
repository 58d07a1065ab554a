import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeOf, type Database, type UsageAnswer } from '../../support/api/answers.ts'
import { createDatabase, databasePath, dedicated, untilGone, untilRunning } from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'

/** Usage of a dedicated database, from outside. */

const LONG = { timeout: 600_000 }
const deployment = openDeployment()
let acme: Tenant
let other: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
  other = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const itemsOf = (usage: readonly UsageAnswer[]) => usage.map(({ item }) => item)
const quantitiesOf = (usage: readonly UsageAnswer[]) => usage.map(({ quantity }) => Number(quantity))
const durationsMs = (usage: readonly UsageAnswer[]) => usage.map(({ from, to }) => Date.parse(to) - Date.parse(from))

async function created(name: string) {
  const editor = dedicated(acme.as('editor'))
  const { region, motor } = deployment.installation
  const body = { name, organization: acme.organization, namespace: acme.namespace, engine: motor, plan: 'small' }
  const made = await createDatabase(editor, { ...body, region: region.id })
  await untilRunning(editor, made)
  return { editor, made, ranAt: Date.now() }
}

const usageOf = async ({ id }: Pick<Database, 'id'>, query = '') =>
  (await expectSuccess(dedicated(acme.as('viewer'))('GET', `/v1/databases/${id}/usage${query}`))).body.data.usage

test('the usage of a new database begins with it, in billable items of the catalog', LONG, async () => {
  const { editor, made, ranAt } = await created('metered')
  const { metadata } = (await expectSuccess(editor('GET', '/v1/databases/create/metadata'))).body.data
  const usage = await usageOf(made)
  expect(usage).toMatchObject([
    { item: 'small', unit: 'hour' },
    { item: 'storage', unit: 'GiB-hour' },
  ])
  expect(metadata.billableItems.map(({ id }) => id)).toEqual(expect.arrayContaining(itemsOf(usage)))
  const [ms = 0] = durationsMs(usage)
  const storageGiB = metadata.plans.find(({ id }) => id === 'small')?.storageGiB
  const hours = expect.closeTo(ms / 3_600_000, 5) as number
  expect(quantitiesOf(usage)).toEqual([hours, expect.closeTo((ms * Number(storageGiB)) / 3_600_000, 4)])
  // A cluster counts creation in whole seconds; a server may exist a moment later.
  const from = Date.parse(String(usage[0]?.from))
  expect(from).toBeGreaterThan(Date.parse(made.createdAt) - 1_000)
  expect(from).toBeLessThanOrEqual(ranAt)
  for (const query of ['?from=now', '?to=2026-01-01T00:00:00Z&from=2026-01-02T00:00:00Z', '?day=1']) {
    expect(codeOf(await editor('GET', `${databasePath(made)}/usage${query}`)), query).toBe('400 invalid_request')
  }
})

test('usage follows the plan, ends with the deletion, and outlives the database', LONG, async () => {
  const { editor, made } = await created('brief')
  const first = await usageOf(made)
  await expectSuccess(editor('PATCH', databasePath(made), { body: { plan: 'medium' } }))
  await untilRunning(editor, made)
  await expect.poll(async () => itemsOf(await usageOf(made))).toEqual(['medium', 'small', 'storage'])
  const [medium, small] = await usageOf(made)
  expect(medium?.from).toBe(small?.to)
  // The time of a deletion has whole seconds: less than that may not count.
  await expect.poll(async () => durationsMs(await usageOf(made))[0]).toBeGreaterThan(1_000)

  await expectSuccess(editor('DELETE', databasePath(made)))
  await untilGone(editor, made)
  const last = await usageOf(made)
  expect(itemsOf(last)).toEqual(['medium', 'small', 'storage'])
  expect(await usageOf(made)).toEqual(last)
  const past = await usageOf(made, `?to=${String(first[0]?.to)}`)
  expect(quantitiesOf(past)).toEqual(quantitiesOf(first).map((quantity) => expect.closeTo(quantity, 4) as number))

  const ofNamespace = (await expectSuccess(editor('GET', `${acme.path}/usage`))).body.data.usage
  expect(ofNamespace.slice(0, 3)).toEqual(last.map((sum) => ({ database: { id: made.id, name: 'brief' }, ...sum })))
  const path = `${databasePath(made)}/usage`
  expect((await expectSuccess(dedicated(deployment.admin())('GET', path))).body.data.usage).toEqual(last)
  expect(codeOf(await dedicated(other.as('admin'))('GET', path))).toBe('404 not_found')
  expect(codeOf(await dedicated(other.as('admin'))('GET', `${acme.path}/usage`))).toBe('404 not_found')
})
