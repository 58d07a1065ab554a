import { describe, expect, test } from 'vitest'
import { postgresqlBench } from '../../support/postgresql/engine.ts'

describe.each(['14', '15'] as const)('PostgreSQL %s', (series) => {
  const bench = postgresqlBench(series)

  test('measures the tenant’s connections, transactions, page reads and running slow statements', async ({ task }) => {
    const { admin } = bench
    expect(await admin.measure('nobody')).toBeUndefined()
    // The sessions of a first try may still be there.
    const name = `measured${task.result?.retryCount ?? 0}`
    const tenant = await bench.tenant(name)
    const session = await bench.as(tenant)
    const other = await bench.as(tenant)
    const measure = async () => (await admin.measure(name)) ?? expect.fail('not measured')
    await expect.poll(async () => (await measure()).connections).toBe(2)
    const before = await measure()
    await session.query('CREATE TABLE t AS SELECT g, repeat(md5(g::text), 20) AS text FROM generate_series(1, 20000) AS g')
    for (let index = 0; index < 50; index += 1) await session.query('SELECT count(*) FROM t WHERE g < 10')
    // The server publishes the counters of a session with a delay of up to a second.
    await expect.poll(async () => (await measure()).transactions - before.transactions).toBeGreaterThanOrEqual(51)
    const after = await measure()
    expect(after.transactions - before.transactions).toBeLessThan(500)
    expect(after.sizeBytes - before.sizeBytes).toBeGreaterThan(10_000_000)
    expect(after.pages.reads).toBeGreaterThan(before.pages.reads)
    expect(after.pages.misses).toBeLessThanOrEqual(after.pages.reads)
    expect(after.slow).toEqual({ running: 0 })
    const { rows } = await other.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const slow = expect(other.query('SELECT pg_sleep(600)')).rejects.toThrow('canceling statement')
    await expect.poll(async () => (await measure()).slow).toEqual({ running: 1 })
    await session.query('SELECT pg_cancel_backend($1)', [rows[0]?.pid])
    await slow
    // The session reports that it is idle after its client has got the error.
    await expect.poll(async () => (await measure()).slow).toEqual({ running: 0 })
    await other.end()
    await expect.poll(async () => (await measure()).connections).toBe(1)
  })
})
