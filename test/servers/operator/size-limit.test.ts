import { expect, test } from 'vitest'
import type { Motor } from '../../../crds/motor.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import type { AdminTarget } from '../../../operator/engines/engine.ts'
import { conditionOf, isReady } from '../../../store/conditions.ts'
import { keyOf } from '../../../store/port.ts'
import type { Instance } from '../../support/api/answers.ts'
import { clientOf } from '../../support/families/family-client.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { MOTORS, startMysql } from '../../support/mysql/server.ts'
import { LIMITS, startOperator } from '../../support/operator/operator.ts'
import { startPostgres } from '../../support/postgresql/postgres.ts'

interface Server extends AsyncDisposable {
  readonly target: AdminTarget
}

const SERVERS: readonly { readonly motor: Motor; readonly start: () => Promise<Server> }[] = [
  { motor: 'postgresql-15.4.0', start: () => startPostgres('15') },
  ...MOTORS.map(({ motor }) => ({ motor, start: () => startMysql(motor) })),
]

/** Rows of 1 KiB, which are more than the size limit. */
const TOO_MANY = 40_000

/** Starts a server of a motor and an operator whose size limit is 24 MiB. */
async function crowded({ motor, start }: (typeof SERVERS)[number], every: { sessionsMs: number; sweepMs: number }) {
  await using opened = new AsyncDisposableStack()
  const { target } = opened.use(await start())
  const settings = { limits: { ...LIMITS, sizeBytes: 24 * 2 ** 20 }, every }
  const operator = opened.use(await startOperator({ target, motor, settings }))
  const kept = opened.move()
  return {
    operator,
    async create(name: string): Promise<Instance> {
      const { metadata } = await operator.create(name)
      await operator.untilInstance(name, (seen) => seen !== undefined && isReady(seen))
      const { user, password, database } = await operator.credentialsOf(name)
      const at = { host: target.host, port: target.port, tls: { required: false, ca: null } }
      return { ...at, id: metadata.uid, name: database, user, password } as Instance
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

test.each(underTest(SERVERS))(
  'the watchdog disables only an instance of $motor above its size limit; a reset enables it again',
  async (server) => {
    const client = clientOf(server.motor)
    await using at = await crowded(server, { sessionsMs: 60_000, sweepMs: 50 })
    const [big, small] = [await at.create('big'), await at.create('small')]
    await client.add(small, 'kept')
    // A statement that the watchdog interrupts still uses the space.
    await client.fill(big, TOO_MANY).catch(() => undefined)
    await at.operator.untilInstance('big', (seen) => seen?.status?.isEnabled === false)
    const off = at.operator.instances.byUid(big.id)
    expect(off && conditionOf(off, 'Ready')).toMatchObject({ status: 'False', reason: 'SizeExceeded' })
    await expect(client.items(big)).rejects.toSatisfy((error) => client.isRefusal(error))
    expect(await client.items(small)).toEqual(['kept'])

    await at.operator.store.mergePatch(SharedInstance, keyOf(off ?? expect.fail('gone')), { spec: { resetVersion: 1 } })
    await at.operator.untilInstance('big', (seen) => seen !== undefined && isReady(seen) && seen.status?.isEnabled === true)
    expect(await client.items(big)).toEqual([])
    await client.fill(big, 10)
  },
)

test.each(underTest(SERVERS))(
  'the watchdog disables a tenant of $motor above its size limit between two sweeps',
  async (server) => {
    const client = clientOf(server.motor)
    await using at = await crowded(server, { sessionsMs: 50, sweepMs: 60_000 })
    const fast = await at.create('fast')
    await client.fill(fast, TOO_MANY).catch(() => undefined)
    // A database counts as busy for some time after its last statement.
    await at.operator.untilInstance('fast', (seen) => seen?.status?.isEnabled === false)
    await expect(client.items(fast)).rejects.toSatisfy((error) => client.isRefusal(error))
  },
)
