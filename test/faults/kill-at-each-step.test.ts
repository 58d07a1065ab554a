// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Answer } from '../support/api/answers.ts'
import { mainProcesses, tenantsListed, tenantsOf } from '../support/deployment/data-directory.ts'
import { type MortalMooring, startMortal } from '../support/deployment/mortal-mooring.ts'
import { query } from '../support/postgresql/sql.ts'
import { SOON } from '../support/patience.ts'

/** Mooring with one data directory for all crashes, so that each start also has the leftovers of earlier crashes. */
let mooring: MortalMooring
beforeAll(async () => {
  mooring = await startMortal()
})
afterAll(() => mooring[Symbol.asyncDispose]())

const create = (key: string): Promise<Answer> =>
  mooring.call('POST', '/v1/instances', {
    body: { identifier: key, region: mooring.living().ready.region, motor: 'postgresql-15.4.0' },
    headers: { 'Idempotency-Key': key },
  })

async function expectOneOfEach(): Promise<void> {
  expect(await tenantsOf(mooring.dataDir)).toEqual(await tenantsListed(mooring.living()))
  expect(await mainProcesses(mooring.dataDir)).toHaveLength(1)
}

test.each(['claim.secret', 'claim.claim', 'claim.verify', 'claim.status'])(
  'a repeated request gets the one database with a working password after kill -9 at %s',
  async (step) => {
    const before = await mooring.dieAt(step, () => create(step))
    const first = await create(step)
    expect(first.status).toBe(201)
    const { instance } = first.body.data
    expect(await query(instance, 'SELECT current_user AS user')).toEqual([{ user: instance.name }])
    expect((await create(step)).body.data.instance).toEqual(instance)
    if (before) expect(before.body.data.instance).toEqual(instance)
    await expectOneOfEach()
  },
)

test.each(['reset.reset', 'reset.verify', 'reset.status'])(
  'a reset finishes without help and keeps the credentials after kill -9 at %s',
  async (step) => {
    const { instance } = (await create(step)).body.data
    await query(instance, 'CREATE TABLE t (i int)')
    await mooring.dieAt(step, () => mooring.call('POST', `/v1/instances/${instance.id}/reset`))
    // The repeated creation is answered when the instance is ready again.
    expect((await create(step)).body.data.instance).toMatchObject({ id: instance.id, password: instance.password })
    expect(await query(instance, "SELECT count(*)::int AS n FROM pg_tables WHERE tablename = 't'")).toEqual([{ n: 0 }])
    await expectOneOfEach()
  },
)

test.each(['change.renew-secret', 'change.password', 'change.verify'])(
  'the next answer of a rotation has the working password after kill -9 at %s',
  async (step) => {
    const { instance: old } = (await create(step)).body.data
    await mooring.dieAt(step, () => mooring.call('POST', `/v1/instances/${old.id}/password`))
    const { instance } = (await create(step)).body.data
    expect(instance.id).toBe(old.id)
    expect(instance.password).not.toBe(old.password)
    expect(await query(instance, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    await expect(query(old, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    await expectOneOfEach()
  },
)

test.each(['change.disable', 'change.enable'])('the requested isEnabled takes effect after kill -9 at %s', async (step) => {
  const { instance } = (await create(step)).body.data
  const isEnabled = step === 'change.enable'
  const path = `/v1/instances/${instance.id}`
  if (isEnabled) await mooring.call('PATCH', path, { body: { isEnabled: false } })
  await mooring.dieAt(step, () => mooring.call('PATCH', path, { body: { isEnabled } }))
  await expect.poll(async () => (await mooring.call('GET', path)).body.data.instance.isEnabled, SOON).toBe(isEnabled)
  const login = query(instance, 'SELECT 1 AS one')
  if (isEnabled) expect(await login).toEqual([{ one: 1 }])
  else await expect(login).rejects.toMatchObject({ code: '28000' })
  await mooring.call('DELETE', path)
  await expectOneOfEach()
})

test.each(['delete.drop', 'delete.forget-secret', 'delete.release'])(
  'a deletion finishes without help and frees its key after kill -9 at %s',
  async (step) => {
    const { instance } = (await create(step)).body.data
    await mooring.dieAt(step, () => mooring.call('DELETE', `/v1/instances/${instance.id}`))
    await expect.poll(async () => (await mooring.call('GET', `/v1/instances/${instance.id}`)).status, SOON).toBe(404)
    await expect(query(instance, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    await expectOneOfEach()
    expect((await create(step)).body.data.instance.id).not.toBe(instance.id)
    await expectOneOfEach()
  },
)
