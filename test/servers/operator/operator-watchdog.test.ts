import { expect, test } from 'vitest'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { conditionOf, isReady } from '../../../store/conditions.ts'
import { keyOf } from '../../../store/port.ts'
import { LIMITS, startOperator } from '../../support/operator/operator.ts'
import { startPostgres } from '../../support/postgresql/postgres.ts'

const MIB = 2 ** 20

test('the watchdog disables only an instance above its size limit; a reset enables it again', async () => {
  await using server = await startPostgres('15')
  await using operator = await startOperator({
    target: server.target,
    settings: { limits: { ...LIMITS, sizeBytes: 24 * MIB }, every: { sessionsMs: 60_000, sweepMs: 50 } },
  })
  const big = await operator.create('big')
  await operator.create('small')
  for (const name of ['big', 'small']) await operator.untilInstance(name, (seen) => seen !== undefined && isReady(seen))
  const session = await server.client(await operator.credentialsOf('big'))
  await session.query('CREATE TABLE filler (text text)')
  // An insert that the watchdog interrupts still uses the space.
  const filling = session.query('INSERT INTO filler SELECT repeat(md5(n::text), 30) FROM generate_series(1, 30000) AS n')
  await Promise.allSettled([filling])

  await operator.untilInstance('big', (seen) => seen?.status?.isEnabled === false)
  const off = operator.instances.get(keyOf(big))
  expect(off && conditionOf(off, 'Ready')).toMatchObject({ status: 'False', reason: 'SizeExceeded' })
  // The session is ended, and a new login is rejected with 28000.
  await expect(session.query('SELECT 1')).rejects.toThrow()
  await expect(server.client(await operator.credentialsOf('big'))).rejects.toMatchObject({ code: '28000' })
  await server.client(await operator.credentialsOf('small'))

  await operator.store.mergePatch(SharedInstance, keyOf(big), { spec: { resetVersion: 1 } })
  await operator.untilInstance('big', (seen) => seen !== undefined && isReady(seen) && seen.status?.isEnabled === true)
  const again = await server.client(await operator.credentialsOf('big'))
  expect((await again.query(`SELECT to_regclass('filler') AS filler`)).rows).toEqual([{ filler: null }])
})

test('the watchdog disables a tenant above its size limit between two sweeps', async () => {
  await using server = await startPostgres('15')
  await using operator = await startOperator({
    target: server.target,
    settings: { limits: { ...LIMITS, sizeBytes: 24 * MIB }, every: { sessionsMs: 50, sweepMs: 60_000 } },
  })
  await operator.create('fast')
  await operator.untilInstance('fast', (seen) => seen !== undefined && isReady(seen))
  const session = await server.client(await operator.credentialsOf('fast'))
  await session.query('CREATE TABLE filler (text text)')
  const fill = async (): Promise<never> => {
    for (;;) await session.query('INSERT INTO filler SELECT repeat(md5(n::text), 30) FROM generate_series(1, 1000) AS n')
  }
  await expect(fill()).rejects.toThrow()
  await operator.untilInstance('fast', (seen) => seen?.status?.isEnabled === false)
  await expect(session.query('SELECT 1')).rejects.toThrow()
})

test('the watchdog resets a password that the tenant changed to the one of the Secret', async () => {
  await using server = await startPostgres('15')
  await using operator = await startOperator({
    target: server.target,
    settings: { every: { sessionsMs: 60_000, sweepMs: 50 } },
  })
  await operator.create('own')
  await operator.untilInstance('own', (seen) => seen !== undefined && isReady(seen))
  const credentials = await operator.credentialsOf('own')
  const session = await server.client(credentials)
  await session.query(`ALTER ROLE ${credentials.user} PASSWORD 'its own'`)
  await expect(session.query('SELECT pg_sleep(600)')).rejects.toThrow()
  await expect(server.client({ ...credentials, password: 'its own' })).rejects.toMatchObject({ code: '28P01' })
  await expect
    .poll(() =>
      server.client(credentials).then(
        () => 'open',
        () => 'refused',
      ),
    )
    .toBe('open')
})

test('a rotation by `passwordVersion` ends the sessions of the old password', async () => {
  await using server = await startPostgres('15')
  await using operator = await startOperator({ target: server.target })
  const instance = await operator.create('rotated')
  await operator.untilInstance('rotated', (seen) => seen !== undefined && isReady(seen))
  const session = await server.client(await operator.credentialsOf('rotated'))
  await operator.store.mergePatch(SharedInstance, keyOf(instance), { spec: { passwordVersion: 2 } })
  await operator.untilInstance('rotated', (seen) => seen?.status?.passwordVersion === 2)
  await expect(session.query('SELECT 1')).rejects.toThrow()
  await server.client(await operator.credentialsOf('rotated'))
})
