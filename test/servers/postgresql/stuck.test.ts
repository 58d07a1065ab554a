import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { postgresqlBench, until } from '../../support/postgresql/engine.ts'
import { inTime } from '../../support/in-time.ts'
import { SOON } from '../../support/patience.ts'
import { SERIES } from '../../support/postgresql/postgres.ts'
import { connect, TIMEOUTS } from '../../../operator/engines/postgresql/connection.ts'
import { postgresqlAdmin } from '../../../operator/engines/postgresql/postgresql.ts'
import { rejectLogins } from '../../../operator/engines/postgresql/suspension.ts'
import { createWatchdog } from '../../../operator/engines/postgresql/watchdog.ts'
import { copyNothing, copyOneRow, loop, readNothing } from '../../support/postgresql/stuck.ts'

const OWNER = 'a1b2c3d4'
/** SQLSTATE of a login that names a library which the server lacks. */
const REFUSED = '58P01'

describe.each(SERIES)('PostgreSQL %s: a session of a tenant that does not end or wait for locks', (series) => {
  const bench = postgresqlBench(series)

  afterEach(() => bench.server.crash())

  /** Waits until a tenant has a session in this wait; null: one that computes. */
  async function untilIn(name: string, wait: string | null): Promise<void> {
    const root = await bench.server.client()
    await until(async () => {
      const { rowCount } = await root.query(
        `SELECT FROM pg_stat_activity WHERE usename = $1 AND state = 'active' AND wait_event IS NOT DISTINCT FROM $2`,
        [name, wait],
      )
      return rowCount === 1
    })
    await root.end()
  }

  /** Returns the directories of databases that the catalog does not have. */
  async function strayDirectories(): Promise<readonly string[]> {
    const root = await bench.server.client()
    const { rows } = await root.query<{ oid: string }>(
      `SELECT oid FROM pg_ls_dir('base') AS oid WHERE oid ~ '^[0-9]+$' AND oid::oid NOT IN (SELECT oid FROM pg_database)`,
    )
    await root.end()
    return rows.map(({ oid }) => oid)
  }

  async function discarded(): Promise<number> {
    return (await bench.admin.discarded()).length
  }

  async function expectOpen(client: pg.Client): Promise<void> {
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  }

  /** Waits until nothing is left of what was dropped. As after a restart, a new administration does not know what could not be removed. */
  async function untilRemoved(): Promise<void> {
    await using admin = postgresqlAdmin(bench.server.target)
    const leftovers = async () => {
      while (await admin.tidy(0));
      return (await admin.catalog()).leftovers
    }
    await expect.poll(leftovers, SOON).toEqual([])
    expect(await discarded()).toBe(0)
    expect(await strayDirectories()).toEqual([])
  }

  test('delays no DELETE, reset or tidy of others or of its own, which remove the data after the statement', async () => {
    await bench.settle(0)
    const looping = await bench.tenant('looping')
    const kept = await bench.tenant('kept')
    const others = Array.from({ length: 3 }, (_, index) => `other${index}`)
    for (const name of others) await bench.tenant(name)
    await (await bench.as(kept)).query('CREATE TABLE t (n int)')
    await loop(await bench.as(looping))
    await untilIn('looping', null)

    await Promise.all(others.map((name) => inTime(bench.admin.drop(name, OWNER))))
    await inTime(bench.admin.reset('kept', {}))
    await inTime(bench.admin.reset('looping', {}))
    await inTime(bench.admin.drop('looping'))
    for (let round = 0; round < 2; round++) await inTime(bench.admin.tidy(1))

    const { tenants, spare } = await bench.admin.catalog()
    expect({ tenants: [...tenants.keys()], spare }).toEqual({ tenants: ['kept'], spare: 1 })
    expect((await (await bench.as(kept)).query(`SELECT to_regclass('t') AS t`)).rows).toEqual([{ t: null }])
    for (const name of ['looping', ...others]) expect(await bench.admin.find(name)).toEqual({ database: false, login: 'absent' })
    await expect(bench.as(looping)).rejects.toMatchObject({ code: '28P01' })
    // In 14 only a session in the database, or of its role, delays the removal of a database.
    const left = async () => {
      await bench.settle(1)
      return discarded()
    }
    await expect.poll(left, SOON).toBe(series === '15' ? others.length + 3 : 2)
    const tags = (await bench.admin.discarded()).filter((owner) => owner === OWNER)
    expect(tags).toHaveLength(series === '15' ? others.length : 0)

    await bench.server.crash()
    await untilRemoved()
  })

  test.each([
    { does: 'sends nothing in COPY FROM STDIN', wait: 'ClientRead', start: (client: pg.Client) => copyNothing(client, 't') },
    { does: 'sends one row of COPY byte by byte', wait: 'ClientRead', start: (client: pg.Client) => copyOneRow(client, 't') },
    { does: 'does not read its result', wait: 'ClientWrite', start: readNothing },
  ])('whose client $does ends only when a drop waits for it', async ({ wait, start }) => {
    const idle = await bench.tenant('idle')
    const [client, bystander] = [await bench.as(idle), await bench.as(idle)]
    await client.query('CREATE TABLE t (n int)')
    await bystander.query('BEGIN; SELECT 1')
    start(client)
    await untilIn('idle', wait)
    await bench.tenant('leaving')
    await inTime(bench.admin.drop('leaving'))
    await untilRemoved()
    await expectOpen(bystander)
    // In 14 nothing waits for such a session.
    if (series === '14') await untilIn('idle', wait)
    await bench.admin.drop('idle')
  })

  test('with locks on all spares delays no claim and no reset', async () => {
    const [looping] = [await bench.tenant('looping'), await bench.tenant('kept')]
    await bench.settle(2)
    const root = await bench.server.client()
    const { rows } = await root.query<{ name: string }>(`SELECT datname AS name FROM pg_database WHERE datname LIKE 'pool%'`)
    await root.end()
    expect(rows).toHaveLength(2)
    const client = await bench.as(looping)
    await client.query('BEGIN')
    for (const { name } of rows) await client.query(`ALTER ROLE looping IN DATABASE ${name} SET work_mem = '4MB'`)
    await loop(client)
    for (const name of ['first', 'second']) {
      const tenant = await inTime(bench.tenant(name))
      await expectOpen(await bench.as(tenant))
    }
    await inTime(bench.admin.reset('kept', {}))
  })

  test('with a lock on its own role keeps no bound from being enforced, its own included, and is discarded', async () => {
    await using connection = connect(bench.server.target, { ...TIMEOUTS, lockMs: 500 })
    const enforce = createWatchdog(connection, { survivalMs: 0, stallMs: 0, totalBytes: 0 })
    const check = () => enforce({ statementMs: 600_000, idleTransactionMs: 600_000, sizeBytes: 2 ** 40 })
    const [locking, late] = [await bench.tenant('locking'), await bench.tenant('late')]
    const [client, writing, idle] = [await bench.as(locking), await bench.as(locking), await bench.as(late)]
    await client.query(`BEGIN; ALTER ROLE locking PASSWORD 'x'`)
    await loop(client)
    const granted = writing
      .query('DO $$ BEGIN LOOP GRANT CONNECT ON DATABASE locking TO locking; COMMIT; END LOOP; END $$')
      .catch((error: unknown) => error)
    await expect.poll(async () => (await check()).needsRestart, SOON).toBe(true)
    expect(await granted).toBeDefined()
    await expectOpen(idle)
    await expect(bench.as(locking)).rejects.toMatchObject({ code: REFUSED })

    await using admin = postgresqlAdmin(bench.server.target, connection)
    await inTime(admin.drop('locking', OWNER))
    await inTime(admin.tidy(0))
    expect(await admin.discarded()).toContain(OWNER)
    expect((await admin.catalog()).tenants.has('locking')).toBe(false)
    await bench.server.crash()
    await untilRemoved()
    expect(await bench.admin.find('locking')).toEqual({ database: false, login: 'absent' })
  })

  test('with a lock on its own role stays suspended until its password is set, and disabled in a new database, too', async () => {
    const marked = await bench.tenant('marked')
    const connection = connect(bench.server.target, { ...TIMEOUTS, lockMs: 200 })
    await using admin = postgresqlAdmin(bench.server.target, connection)
    // No statement ends a session of the administrator either.
    const root = await bench.server.client()
    const expectMarked = async (close: Promise<void>) => {
      await close
      await expect(bench.as(marked)).rejects.toMatchObject({ code: REFUSED })
      await root.query('COMMIT')
    }
    const lock = () => root.query(`BEGIN; SELECT FROM pg_authid WHERE rolname = 'marked' FOR UPDATE`)

    await lock()
    await expectMarked(rejectLogins(connection, 'marked'))
    expect(await admin.findChangedPasswords([marked])).toEqual(['marked'])
    await admin.setPassword(marked)
    await expectOpen(await bench.as(marked))

    await lock()
    await expectMarked(admin.disableLogin('marked'))
    await admin.setPassword(marked)
    await admin.reset('marked', {})
    await expect(bench.as(marked)).rejects.toMatchObject({ code: '28000' })
    await admin.enableLogin('marked')
    await expectOpen(await bench.as(marked))
    await root.end()
  })

  test('is suspended past its bound, and the server needs a restart once work for others waits for it', async () => {
    const connection = connect(bench.server.target)
    await using admin = postgresqlAdmin(bench.server.target, connection)
    const enforce = createWatchdog(connection, { survivalMs: 0, stallMs: 0 })
    const late = () => enforce({ statementMs: 0, idleTransactionMs: 600_000, sizeBytes: 2 ** 40 })
    const [looping] = [await bench.tenant('looping'), await bench.tenant('leaving')]
    await loop(await bench.as(looping))
    await untilIn('looping', null)
    expect(await late()).toEqual({ cancelled: 1, ended: 0 })
    expect(await late()).toEqual({ cancelled: 0, ended: 1, suspended: [{ name: 'looping', cause: 'statement' }] })
    await expect(bench.as(looping)).rejects.toMatchObject({ code: '28P01' })
    await inTime(admin.drop('leaving'))
    expect(await late()).toEqual({
      ...{ cancelled: 0, ended: 1, suspended: [{ name: 'looping', cause: 'statement' }] },
      // In 14 nothing waits for the statement of another tenant.
      ...(series === '15' && { needsRestart: true }),
    })
  })
})
