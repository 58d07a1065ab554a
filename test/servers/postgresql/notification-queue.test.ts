import { describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { connect } from '../../../operator/engines/postgresql/connection.ts'
import { createWatchdog } from '../../../operator/engines/postgresql/watchdog.ts'

const UNLIMITED = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
/** 8 MB of the queue. */
const SMALL = 0.001

describe.each(SERIES)('PostgreSQL %s: a tenant that fills the notification queue', (series) => {
  const bench = postgresqlBench(series)

  test('is suspended alone: neighbours keep their transactions and their listeners', async () => {
    const [noisy, neighbour] = [await bench.tenant('noisy'), await bench.tenant('neighbour')]
    const [listener, notifier] = [await bench.as(noisy), await bench.as(noisy)]
    const [migration, listening] = [await bench.as(neighbour), await bench.as(neighbour)]
    await migration.query('BEGIN; CREATE TABLE t (n int)')
    await listening.query('LISTEN jobs')
    await listening.query(`BEGIN; SELECT pg_notify('jobs', 'one')`)
    await listener.query('LISTEN storm')
    await listener.query('BEGIN; SELECT 1')
    const root = await bench.server.client()
    const used = async (): Promise<number> =>
      (await root.query<{ used: number }>('SELECT pg_notification_queue_usage() AS used')).rows[0]?.used ?? 0
    while ((await used()) <= SMALL) {
      await notifier.query(`SELECT count(pg_notify('storm', repeat('x', 7900) || g)) FROM generate_series(1, 400) g`)
    }
    await using connection = connect(bench.server.target)
    const enforce = createWatchdog(connection, { suspendAt: SMALL })
    expect(await enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 1, suspended: [{ name: 'noisy', cause: 'notifications' }] })
    await expect(notifier.query('SELECT 1')).rejects.toThrow()
    await expect(listener.query('SELECT 1')).rejects.toThrow()
    await expect(bench.as(noisy)).rejects.toMatchObject({ code: '28P01' })
    expect(await bench.admin.findChangedPasswords([noisy, neighbour])).toEqual(['noisy'])

    // The neighbour's listener still keeps the queue, which nobody fills any more: the tenant may return.
    await bench.admin.setPassword(noisy)
    const returned = await bench.as(noisy)
    expect(await used()).toBeGreaterThan(SMALL)
    expect(await enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    await returned.query('SELECT 1')
    await migration.query('COMMIT')
    await listening.query('COMMIT')
    await listening.query('SELECT 1')
    await expect.poll(used).toBeLessThan(SMALL)
  })
})
