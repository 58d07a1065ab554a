import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { codeOf, type Database, fieldsOf } from '../../support/api/answers.ts'
import {
  asInstance,
  backupsOf,
  createDatabase,
  databasePath,
  dedicated,
  untilBackedUp,
  untilGone,
  untilRestorable,
  untilRunning,
} from '../../support/api/databases.ts'
import { expectSuccess, type Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { query } from '../../support/postgresql/sql.ts'
import { LATER, patient } from '../../support/patience.ts'

/** Point-in-time recovery of dedicated databases, from outside. */

const deployment = openDeployment()
let acme: Tenant
let other: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
  other = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const client = clientOf('postgresql-15.4.0')
const editor = () => dedicated(acme.as('editor'))
const SECOND = 1_000
const UNKNOWN = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99'

const bodyOf = (name: string, more: object = {}, tenant = acme) => ({
  ...{ name, organization: tenant.organization, namespace: tenant.namespace, plan: 'small' },
  ...{ engine: 'postgresql-15.4.0', region: deployment.installation.region.id },
  ...more,
})

/** Returns the present time of a database's server, in ms. */
async function timeOf(database: Database): Promise<number> {
  const [row] = await query(asInstance(database), 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
  return Math.floor(Number(row?.now))
}

describe('a database with point-in-time recovery', () => {
  /** Database with the item `kept`, and a moment at which it had only that. */
  let shop: Database
  let moment: string

  beforeAll(async () => {
    const made = await createDatabase(editor(), bodyOf('shop', { pointInTimeRecovery: { retentionDays: 7 } }))
    expect(made).toMatchObject({ pointInTimeRecovery: { retentionDays: 7 }, restoreWindow: null })
    shop = await untilRunning(editor(), made)
    await untilBackedUp(editor(), shop)
    await client.add(asInstance(shop), 'kept')
    const before = await timeOf(shop)
    moment = new Date(before).toISOString()
    await vi.waitFor(async () => expect(await timeOf(shop)).toBeGreaterThan(before + SECOND), { timeout: 120 * SECOND })
    await client.add(asInstance(shop), 'a mistake')
    await untilRestorable(editor(), shop, await timeOf(shop))
  })

  test('has a window and backups', async () => {
    const { database } = (await expectSuccess(editor()('GET', databasePath(shop)))).body.data
    const { earliest = '', latest = '' } = database.restoreWindow ?? {}
    expect(Date.parse(earliest)).toBeLessThanOrEqual(Date.parse(moment))
    expect(Date.parse(latest)).toBeGreaterThan(Date.parse(moment))
    const [first] = await backupsOf(editor(), shop)
    expect(first).toMatchObject({ kind: 'scheduled', status: 'succeeded', error: null })
    expect(first?.sizeBytes).toBeGreaterThan(0)
  })

  test('has its backups in the usage', { timeout: patient(150_000) }, async () => {
    const usage = async () => (await expectSuccess(editor()('GET', `${databasePath(shop)}/usage`))).body.data.usage
    const backup = async () => (await usage()).find(({ item }) => item === 'backup')
    await expect.poll(backup, LATER).toMatchObject({ unit: 'GiB-hour', quantity: expect.stringMatching(/[1-9]/) as string })
  })

  test('is restored to a moment before a mistake, as another database', { timeout: patient(300_000) }, async () => {
    const restoreFrom = { databaseId: shop.id, time: moment }
    const body = bodyOf('restored', { restoreFrom, pointInTimeRecovery: { retentionDays: 1 } })
    const made = await createDatabase(editor(), body)
    expect(['restoring', 'running']).toContain(made.status)
    const restored = await untilRunning(editor(), made)
    expect(restored.connection?.database).toMatch(/^restored/)
    expect(await client.user(asInstance(restored))).toBe(restored.connection?.user)
    expect(await client.items(asInstance(restored))).toEqual(['kept'])
    expect(await client.items(asInstance(shop))).toEqual(['a mistake', 'kept'])
    // The former login does not exist on the restored server.
    const former = { ...asInstance(restored), user: asInstance(shop).user, password: asInstance(shop).password }
    await expect(client.user(former)).rejects.toEqual(expect.toSatisfy((error) => client.isRefusal(error)))
    await client.add(asInstance(restored), 'after the restore')
    await untilBackedUp(editor(), restored)
    await untilRestorable(editor(), restored, await timeOf(restored))
  })

  test('has a backup whose restore is verified', { timeout: patient(240_000) }, async () => {
    const verified = async () => (await backupsOf(editor(), shop)).map(({ lastVerifiedRestore }) => lastVerifiedRestore)
    await expect.poll(verified, { timeout: 200_000, interval: 1_000 }).toContainEqual(expect.any(String))
    const top = async () => (await editor()('GET', databasePath(shop))).body.data.database.lastVerifiedRestore
    await expect.poll(top, LATER).toEqual(expect.any(String))
  })

  test.each([
    { does: 'a time before the window', time: '2020-01-31T12:00:00Z' },
    { does: 'a time after the window', time: '2099-01-31T12:00:00Z' },
  ])('with $does is 422 with the window', async ({ time }) => {
    const restoreFrom = { databaseId: shop.id, time }
    const answer = await editor()('POST', '/v1/databases', { body: bodyOf('new', { restoreFrom }) })
    expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 outside_restore_window', ['restoreFrom.time']])
    expect(answer.body.msg).toContain(shop.restoreWindow?.earliest ?? 'restore window, ')
  })

  test('gives another tenant the same response as a database that does not exist', async () => {
    const create = (databaseId: string) =>
      dedicated(other.as('editor'))('POST', '/v1/databases', {
        body: bodyOf('stolen', { restoreFrom: { databaseId, time: moment } }, other),
      })
    const answers = [await create(shop.id), await create(UNKNOWN)]
    expect(answers.map(codeOf)).toEqual(['422 unknown_database', '422 unknown_database'])
    expect(answers[0]?.body.msg.replace(shop.id, '')).toBe(answers[1]?.body.msg.replace(UNKNOWN, ''))
    expect(codeOf(await dedicated(other.as('editor'))('GET', `${databasePath(shop)}/backups`))).toBe('404 not_found')
  })

  test(
    'is restored to the present, into a namespace by a caller who is an editor in both',
    { timeout: patient(300_000) },
    async () => {
      const time = new Date(await timeOf(shop)).toISOString().replace('Z', '+00:00')
      const restoreFrom = { databaseId: shop.id, time }
      const admin = dedicated(deployment.admin())
      const made = await createDatabase(admin, bodyOf('shared', { restoreFrom }, other))
      const restored = await untilRunning(admin, made)
      expect(await client.items(asInstance(restored))).toEqual(['a mistake', 'kept'])
    },
  )

  test('is backed up on request', { timeout: patient(200_000) }, async () => {
    const requested = await editor()('POST', `${databasePath(shop)}/backups`)
    expect(codeOf(requested)).toBe('202 OK')
    await expect
      .poll(() => backupsOf(editor(), shop), LATER)
      .toContainEqual(expect.objectContaining({ kind: 'requested', status: 'succeeded' }))
    const viewer = dedicated(acme.as('viewer'))
    expect(codeOf(await viewer('POST', `${databasePath(shop)}/backups`))).toBe('403 forbidden')
    expect((await backupsOf(viewer, shop)).length).toBeGreaterThanOrEqual(2)
  })

  test('is restored after its deletion, if its backups are kept', { timeout: patient(300_000) }, async () => {
    const { latest = '' } = (await expectSuccess(editor()('GET', databasePath(shop)))).body.data.database.restoreWindow ?? {}
    expect(codeOf(await editor()('DELETE', `${databasePath(shop)}?keepBackups=true`))).toBe('202 OK')
    await untilGone(editor(), shop)
    const { data } = (await expectSuccess(editor()('GET', `${databasePath(shop)}/backups`))).body
    expect(data.backups.length).toBeGreaterThanOrEqual(2)
    const restoreFrom = { databaseId: shop.id, time: latest }
    const again = await untilRunning(editor(), await createDatabase(editor(), bodyOf('shop', { restoreFrom })))
    expect(await client.items(asInstance(again))).toEqual(['a mistake', 'kept'])

    const kept = `${databasePath(shop)}/backups`
    expect(codeOf(await dedicated(acme.as('viewer'))('DELETE', kept))).toBe('403 forbidden')
    expect(codeOf(await editor()('DELETE', kept))).toBe('202 OK')
    await expect.poll(async () => codeOf(await editor()('GET', kept)), LATER).toBe('404 not_found')
  })
})

test('a database gets the add-on later, and loses it with its backups', { timeout: patient(300_000) }, async () => {
  const plain = await untilRunning(editor(), await createDatabase(editor(), bodyOf('plain')))
  await client.add(asInstance(plain), 'kept')
  expect(codeOf(await editor()('POST', `${databasePath(plain)}/backups`))).toBe('409 conflict')
  const kept = await editor()('DELETE', `${databasePath(plain)}?keepBackups=true`)
  expect([codeOf(kept), fieldsOf(kept)]).toEqual(['422 unsupported_addon', ['keepBackups']])
  const patch = (pointInTimeRecovery: object | null) =>
    expectSuccess(editor()('PATCH', databasePath(plain), { body: { pointInTimeRecovery } }))

  await patch({ retentionDays: 3 })
  await untilBackedUp(editor(), await untilRunning(editor(), plain))
  await patch(null)
  const without = await untilRunning(editor(), plain)
  expect(without).toMatchObject({ pointInTimeRecovery: null, restoreWindow: null })
  await expect.poll(() => backupsOf(editor(), plain), LATER).toEqual([])
  expect(await client.items(asInstance(without))).toEqual(['kept'])
})

test.each([
  {
    does: 'a retention of no day',
    change: { pointInTimeRecovery: { retentionDays: 0 } },
    field: 'pointInTimeRecovery.retentionDays',
  },
  {
    does: 'a retention of 36 days',
    change: { pointInTimeRecovery: { retentionDays: 36 } },
    field: 'pointInTimeRecovery.retentionDays',
  },
  { does: 'a restore without a time', change: { restoreFrom: { databaseId: UNKNOWN } }, field: 'restoreFrom.time' },
  {
    does: 'a restore of no id',
    change: { restoreFrom: { databaseId: 'x', time: '2026-01-31T12:00:00Z' } },
    field: 'restoreFrom.databaseId',
  },
])('a POST with $does is 400', async ({ change, field }) => {
  const answer = await editor()('POST', '/v1/databases', { body: bodyOf('new', change) })
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['400 invalid_request', [field]])
})

test('another engine than PostgreSQL has no point-in-time recovery', async () => {
  const change = { engine: 'mariadb-10.7.4', pointInTimeRecovery: { retentionDays: 1 } }
  const answer = await editor()('POST', '/v1/databases', { body: bodyOf('new', change) })
  expect([codeOf(answer), fieldsOf(answer)]).toEqual(['422 unsupported_addon', ['pointInTimeRecovery']])
})
