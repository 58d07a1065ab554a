import { describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { connect } from '../../../operator/engines/postgresql/connection.ts'
import { createQueueGuard } from '../../../operator/engines/postgresql/notification-queue.ts'

describe.each(SERIES)('PostgreSQL %s: a notification queue that is almost full', (series) => {
  const bench = postgresqlBench(series)

  test('costs all tenants their transactions older than 10 s, and no session without one', async () => {
    const tenant = await bench.tenant('holder')
    const [listener, idle] = [await bench.as(tenant), await bench.as(tenant)]
    await listener.query('LISTEN jobs')
    await listener.query('BEGIN; SELECT 1')
    await using connection = connect(bench.server.target)
    // An empty queue counts as almost full.
    const guard = createQueueGuard(connection, { suspendAt: -1, endAt: -1 })
    expect(await guard()).toEqual({ suspended: [], ended: 0 })
    await expect.poll(guard, { interval: 500 }).toEqual({ suspended: [], ended: 1 })
    await expect(listener.query('SELECT 1')).rejects.toThrow()
    await idle.query('SELECT 1')
  })
})
