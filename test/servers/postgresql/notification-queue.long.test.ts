import { describe, expect, test } from 'vitest'
import { postgresqlBench, until } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { patient } from '../../support/patience.ts'

const UNLIMITED = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }

describe.each(SERIES)('PostgreSQL %s: the watchdog', (series) => {
  const bench = postgresqlBench(series)

  test(
    'ends the session that keeps the notification queue from shrinking, before the queue is full',
    { timeout: patient(60_000) },
    async () => {
      const tenant = await bench.tenant('noisy')
      const [listener, notifier, young] = [await bench.as(tenant), await bench.as(tenant), await bench.as(tenant)]
      await listener.query('LISTEN channel')
      await listener.query('BEGIN; SELECT 1')
      // 2 % of 8 GB, in transactions of 20,000 notifications with 7.9 kB each.
      const root = await bench.server.client()
      const used = async (): Promise<number> =>
        (await root.query<{ used: number }>('SELECT pg_notification_queue_usage() AS used')).rows[0]?.used ?? 0
      while ((await used()) < 0.021) {
        await notifier.query(`SELECT count(pg_notify('channel', repeat('x', 7900) || g)) FROM generate_series(1, 4000) g`)
      }
      await young.query('BEGIN; SELECT 1')
      await until(async () => (await bench.admin.enforce(UNLIMITED)).ended > 0)
      await expect(listener.query('SELECT 1')).rejects.toThrow()
      await until(async () => {
        await notifier.query(`SELECT pg_notify('channel', 'one more')`)
        return (await used()) < 0.02
      })
      expect((await notifier.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    },
  )
})
