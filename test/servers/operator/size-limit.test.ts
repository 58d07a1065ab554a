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
import { query } from '../../support/postgresql/sql.ts'

interface Server extends AsyncDisposable {
  readonly target: AdminTarget
}

interface Case {
  readonly motor: Motor
  readonly start: () => Promise<Server>
  /** Writes more than the size limit, and ends when the watchdog interrupts it. What an interrupted statement wrote still uses the space. */
  readonly fill: (instance: Instance) => Promise<void>
}

/** Rows of 1 KiB. */
const TOO_MANY = 30_000

const SERVERS: readonly Case[] = [
  {
    motor: 'postgresql-15.4.0',
    start: () => startPostgres('15'),
    async fill(instance) {
      await query(instance, 'CREATE TABLE filler (text text)')
      await query(instance, `INSERT INTO filler SELECT repeat('x', 1024) FROM generate_series(1, ${TOO_MANY})`).catch(
        () => undefined,
      )
    },
  },
  ...MOTORS.map(({ motor }) => ({
    motor,
    start: () => startMysql(motor),
    fill: (instance: Instance) =>
      clientOf(motor)
        .fill(instance, TOO_MANY)
        .catch(() => undefined),
  })),
]

/** Starts a server of a motor and an operator whose size limit is 24 MiB. */
async function crowded({ motor, start }: Case, every: { sessionsMs: number; sweepMs: number }) {
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
    await server.fill(big)
    await at.operator.untilInstance('big', (seen) => seen?.status?.isEnabled === false)
    const off = at.operator.instances.byUid(big.id)
    expect(off && conditionOf(off, 'Ready')).toMatchObject({ status: 'False', reason: 'SizeExceeded' })
    await expect(client.items(big)).rejects.toSatisfy((error) => client.isRefusal(error))
    expect(await client.items(small)).toEqual(['kept'])

    await at.operator.store.mergePatch(SharedInstance, keyOf(off ?? expect.fail('gone')), { spec: { resetVersion: 1 } })
    await at.operator.untilInstance('big', (seen) => seen !== undefined && isReady(seen) && seen.status?.isEnabled === true)
    expect(await client.items(big)).toEqual([])
    await client.add(big, 'anew')
  },
)

test.each(underTest(SERVERS))(
  'the watchdog disables a tenant of $motor above its size limit between two sweeps',
  async (server) => {
    const client = clientOf(server.motor)
    await using at = await crowded(server, { sessionsMs: 50, sweepMs: 60_000 })
    const fast = await at.create('fast')
    await server.fill(fast)
    // A database counts as busy for some time after its last statement.
    await at.operator.untilInstance('fast', (seen) => seen?.status?.isEnabled === false)
    await expect(client.items(fast)).rejects.toSatisfy((error) => client.isRefusal(error))
  },
)
