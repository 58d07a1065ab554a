import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { LIMITS, postgresqlBench } from '../../support/postgresql/engine.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'

const UNLIMITED = { statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 1 << 30 }
/** SQLSTATE of "out of shared memory". */
const FULL = { code: '53200' }

const rejection = (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined).catch((error: unknown) => error)

/** Takes advisory locks until the server's lock table has no entry left. */
async function fill(client: pg.Client): Promise<void> {
  for (const step of [1_000, 100, 10, 1]) {
    let error: unknown
    while (error === undefined) {
      error = await rejection(
        client.query(`SAVEPOINT s; SELECT pg_advisory_lock(nextval('n')) FROM generate_series(1, ${step}); RELEASE s`),
      )
    }
    expect(error).toMatchObject(FULL)
    await client.query('ROLLBACK TO s')
  }
}

describe.each(SERIES)('PostgreSQL %s: a tenant that fills the lock table', (series) => {
  const bench = postgresqlBench(series)
  let round = 0

  /** Creates a tenant that fills the lock table, and a neighbour with an open session. */
  async function fillLockTable(): Promise<{ mallory: Tenant; neighbour: Tenant; open: pg.Client }> {
    round += 1
    const [mallory, neighbour] = [await bench.tenant(`mallory${round}`), await bench.tenant(`neighbour${round}`)]
    const open = await bench.as(neighbour)
    await open.query('CREATE TABLE t AS SELECT 1 AS n')
    const [client, changing] = [await bench.as(mallory), await bench.as(mallory)]
    await client.query('CREATE SEQUENCE n')
    await client.query('BEGIN')
    // Its COMMIT makes every session of the administrator read pg_authid again, which takes locks.
    await changing.query(`BEGIN; ALTER ROLE ${mallory.name} PASSWORD 'x'`)
    await fill(client)
    await changing.query('COMMIT')
    await fill(client)
    expect(await rejection(bench.as(neighbour))).toMatchObject(FULL)
    return { mallory, neighbour, open }
  }

  test('loses its sessions to the watchdog and cannot log in until its password is restored; the neighbour is not affected', async () => {
    const { mallory, open, neighbour } = await fillLockTable()
    const suspended = [{ name: mallory.name, cause: 'locks' }]
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 2, suspended })
    expect((await open.query('SELECT n FROM t')).rows).toEqual([{ n: 1 }])
    await (await bench.as(neighbour)).end()
    expect(await rejection(bench.as(mallory))).toMatchObject({ code: '28P01' })
    expect(await bench.admin.findChangedPasswords([mallory, neighbour])).toEqual([mallory.name])
    await bench.admin.setPassword(mallory)
    await (await bench.as(mallory)).end()
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
  })

  test('of predicate locks loses its sessions to the watchdog, which empties the table', async () => {
    const mallory = await bench.tenant('serial')
    const [open, client, root] = [await bench.as(mallory), await bench.as(mallory), await bench.server.client()]
    const held = async (): Promise<number> => (await root.query(`SELECT FROM pg_locks WHERE mode = 'SIReadLock'`)).rowCount ?? 0
    await client.query(`
      CREATE TABLE written (n int); CREATE TABLE many (n int) PARTITION BY LIST (n);
      DO $$ BEGIN FOR i IN 1..300 LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF many FOR VALUES IN (%s)', i, i); END LOOP; END $$`)
    // Predicate locks outlive their transaction while another one that overlaps with it is open.
    await open.query('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM written')
    await client.query('SET default_transaction_isolation = serializable')
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({ cancelled: 0, ended: 0 })
    // A third of the table is 64 for each of 654 connections, by 3.
    await client.query(
      'DO $$ BEGIN FOR i IN 1..50 LOOP PERFORM count(*) FROM many; INSERT INTO written VALUES (1); COMMIT; END LOOP; END $$',
    )
    expect(await held()).toBeGreaterThan((64 * 654) / 3)
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({
      cancelled: 0,
      ended: 2,
      suspended: [{ name: 'serial', cause: 'locks' }],
    })
    await expect.poll(held).toBe(0)
  })

  test('loses its sessions also after the watchdog lost its connection', async () => {
    const mallory = await bench.tenant('later')
    const root = await bench.server.client()
    await root.query(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mooring' AND state LIKE 'idle in%'`,
    )
    await expect.poll(() => bench.admin.enforce(UNLIMITED).catch(() => undefined)).toEqual({ cancelled: 0, ended: 0 })
    const client = await bench.as(mallory)
    await client.query('CREATE SEQUENCE n')
    await client.query('BEGIN')
    await fill(client)
    expect(await bench.admin.enforce(UNLIMITED)).toEqual({
      cancelled: 0,
      ended: 1,
      suspended: [{ name: 'later', cause: 'locks' }],
    })
  })

  const work: readonly (readonly [string, (admin: EngineAdmin, mallory: Tenant) => Promise<unknown>])[] = [
    ['a claim', (admin) => admin.claim({ name: `claimed${round}`, password: 'x' }, LIMITS, {})],
    ['disableLogin', (admin, { name }) => admin.disableLogin(name)],
    ['DELETE', (admin, { name }) => admin.drop(name)],
    ['reading sizes', (admin) => admin.sizes('all')],
    ['the installation of an extension', (admin) => admin.installExtensions(`neighbour${round}`, ['hstore'])],
  ]

  test.each(work)('does not block %s', async (_, act) => {
    const { mallory } = await fillLockTable()
    await act(bench.admin, mallory)
  })
})
