import { describe, expect, test } from 'vitest'
import { LoginState, type SessionBounds } from '../../../operator/engines/engine.ts'
import { mongodbBench } from '../../support/mongodb/engine.ts'
import { SERIES } from '../../support/mongodb/mongod.ts'
import { startStubborn } from '../../support/mongodb/stubborn.ts'
import { LATER, SOON } from '../../support/patience.ts'

const ABSENT = { database: false, login: LoginState.absent }
const BOUNDS: SessionBounds = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
const code = (expected: string): Error => expect.objectContaining({ code: expected }) as Error

describe.each(SERIES)('an operation on MongoDB for %s that no kill interrupts', (series) => {
  const bench = mongodbBench(series)

  /** Lets a new tenant run such an operation, and waits until it runs. */
  async function loop(name: string, kind: 'read' | 'update'): Promise<void> {
    await startStubborn(await bench.as(await bench.tenant(name)), name, kind)
    const stages = [{ $currentOp: { allUsers: true } }, { $match: { 'effectiveUsers.db': name, active: true } }]
    const running = async () =>
      (await bench.server.command('admin', { aggregate: 1, pipeline: stages, cursor: {} })).cursor as unknown
    await expect.poll(running, SOON).toMatchObject({ firstBatch: [{ ns: `${name}.one` }] })
  }

  test('delays no rotation, no disabling, and as a read no reset or deletion of its tenant', async () => {
    await loop('reading', 'read')
    const tenant = { name: 'reading', password: 'second' }
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    await bench.admin.disableLogin('reading')
    await bench.admin.enableLogin('reading')
    await bench.admin.reset('reading', {})
    await bench.admin.verify(tenant)
    expect(await (await bench.as(tenant)).db('reading').listCollections().toArray()).toEqual([])
    await bench.admin.drop('reading', '0123abcd')
    expect(await bench.admin.find('reading')).toEqual(ABSENT)
    expect(await bench.admin.discarded()).toEqual([])
  })

  test('delays no deletion as an update: the data are removed when it has ended', async () => {
    await loop('writing', 'update')
    const tenant = { name: 'writing', password: 'second' }
    await bench.admin.setPassword(tenant)
    await bench.admin.verify(tenant)
    await bench.admin.drop('writing', '0123abcd')
    expect(await bench.admin.find('writing')).toEqual(ABSENT)
    expect((await bench.admin.catalog()).tenants.has('writing')).toBe(false)
    await expect(bench.admin.verify(tenant)).rejects.toThrow(code('login_refused'))
    await expect(bench.admin.claim(tenant, { connections: 3 }, {})).rejects.toThrow(code('engine_failed'))
    expect(await bench.admin.discarded()).toEqual(['0123abcd'])
    await bench.admin.drop('writing', '0123abcd')
    expect(await bench.admin.tidy(0)).toBe(false)
    expect(await bench.admin.discarded()).toEqual(['0123abcd'])
    // Nobody waits for it, so that it may go on within its bound.
    expect(await bench.admin.enforce(BOUNDS)).not.toHaveProperty('needsRestart')

    await bench.server.crash()
    await expect.poll(async () => (await bench.admin.tidy(0), bench.admin.discarded()), LATER).toEqual([])
    const { databases } = await bench.server.command('admin', { listDatabases: 1, nameOnly: true })
    expect(databases).not.toContainEqual(expect.objectContaining({ name: 'writing' }))
  })

  test('requires a restart as an update when a reset waits for it, and suspends nobody', async () => {
    await loop('renewed', 'update')
    await expect(bench.admin.reset('renewed', {})).rejects.toThrow(code('engine_unavailable'))
    expect(await bench.admin.enforce(BOUNDS)).toEqual({ cancelled: 0, ended: 0, needsRestart: true })
    await bench.server.crash()
    await bench.admin.reset('renewed', {})
    const tenant = { name: 'renewed', password: 'password-of-renewed' }
    await bench.admin.verify(tenant)
    expect(await (await bench.as(tenant)).db('renewed').listCollections().toArray()).toEqual([])
    expect(await bench.admin.enforce(BOUNDS)).not.toHaveProperty('needsRestart')
  })
})
