import { expect, test } from 'vitest'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { isReady } from '../../../store/conditions.ts'
import { keyOf } from '../../../store/port.ts'
import { startOperator } from '../../support/operator/operator.ts'
import { startPostgres } from '../../support/postgresql/postgres.ts'

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
