import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Enforced, SessionBounds } from '../../../operator/engines/engine.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { ask, errno, mysqlBench, rows, until } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'
import { STUBBORN } from '../../support/mysql/stubborn.ts'

const WIDE: SessionBounds = { statementMs: 3_600_000, idleTransactionMs: 3_600_000, sizeBytes: 2 ** 40 }

/** Time limit of tests in which an expression occupies a core, on a busy machine. */
const LONG_MS = 240_000

describe.each(underTest(MOTORS))('enforce on $motor', ({ motor }) => {
  const bench = mysqlBench(motor)

  /** The server keeps its list of transactions for as long as it is read more often than every 100 ms (InnoDB, trx0i_s.cc). */
  async function enforce(bounds: Partial<SessionBounds> = {}): Promise<Enforced> {
    await delay(110)
    return bench.admin.enforce({ ...WIDE, ...bounds })
  }

  /** Checks until the watchdog has acted. */
  async function untilEnforced(what: 'cancelled' | 'ended', bounds: Partial<SessionBounds>): Promise<void> {
    await until(async () => (await enforce(bounds))[what] > 0)
  }

  test('touches nothing within the bounds, nor the administrator', async () => {
    const session = await bench.as(await bench.tenant('calm'))
    await session.query('CREATE TABLE t (n INT)')
    await session.beginTransaction()
    await session.query('INSERT INTO t VALUES (1)')
    const root = await bench.root()
    await bench.busy(root)
    await bench.as({ name: 'calm', password: 'password-of-calm' })
    await enforce({ statementMs: 1 })
    await enforce({ statementMs: 1 })
    expect(await enforce()).toEqual({ cancelled: 0, ended: 0 })
    await session.commit()
    root.destroy()
  })

  test('cancels a statement past its bound, and ends the session the second time', async () => {
    const session = await bench.as(await bench.tenant('slow'))
    await bench.busy(session)
    await untilEnforced('cancelled', { statementMs: 10 })
    // The session goes on: only its statement was cancelled.
    await until(async () => (await ask(session, 'SELECT 1')) === 1)
    await bench.busy(session)
    await untilEnforced('ended', { statementMs: 10 })
    await expect(session.query('SELECT 1')).rejects.toThrow()
  })

  test('measures a statement by its own clock when the session shifts that of the server', async () => {
    const session = await bench.as(await bench.tenant('shifter'))
    await session.query('SET timestamp = UNIX_TIMESTAMP() + 100000')
    await bench.busy(session)
    await untilEnforced('cancelled', { statementMs: 1_500 })
    await session.query('SET timestamp = 1')
    await bench.busy(session)
    await untilEnforced('ended', { statementMs: 1_500 })
  })

  test('leaves a session alone that runs one short statement after the other', async () => {
    const session = await bench.as(await bench.tenant('brisk'))
    const brisk = new AbortController()
    const running = (async () => {
      while (!brisk.signal.aborted) await session.query('SELECT SLEEP(0.1)')
    })()
    const end = performance.now() + 4_500
    while (performance.now() < end) expect(await enforce({ statementMs: 3_000 })).toEqual({ cancelled: 0, ended: 0 })
    brisk.abort()
    await running
  })

  test('ends a transaction that is idle past its bound, and frees its locks', async () => {
    const tenant = await bench.tenant('idler')
    const session = await bench.as(tenant)
    await session.query('CREATE TABLE t (n INT PRIMARY KEY)')
    await session.query('INSERT INTO t VALUES (1)')
    await session.beginTransaction()
    await session.query('SELECT * FROM t FOR UPDATE')
    await untilEnforced('ended', { idleTransactionMs: 50 })
    await expect(session.query('SELECT 1')).rejects.toThrow()
    await (await bench.as(tenant)).query('DELETE FROM t')
  })

  test('rolls back a prepared XA transaction that outlives its session', async () => {
    const tenant = await bench.tenant('xa')
    const session = await bench.as(tenant)
    await session.query('CREATE TABLE t (n INT PRIMARY KEY)')
    const xid = "x'00ff27','branch',7"
    for (const sql of [`XA START ${xid}`, 'INSERT INTO t VALUES (1)', `XA END ${xid}`, `XA PREPARE ${xid}`])
      await session.query(sql)
    session.destroy()
    const root = await bench.root()
    expect(await rows(root, 'XA RECOVER')).toHaveLength(1)
    await enforce({ idleTransactionMs: 60_000 })
    expect(await rows(root, 'XA RECOVER')).toHaveLength(1)
    await until(async () => {
      await enforce({ idleTransactionMs: 50 })
      return (await rows(root, 'XA RECOVER')).length === 0
    })
    expect(await rows(await bench.as(tenant), 'SELECT n FROM t')).toEqual([])
  })

  test(
    'requires a restart for an expression that no KILL stops, and suspends its tenant until the sweep',
    async () => {
      const tenant = await bench.tenant('stubborn')
      await bench.busy(await bench.as(tenant), STUBBORN)
      // Within its bounds it may go on.
      for (let check = 0; check < 5; check++) expect(await enforce()).toEqual({ cancelled: 0, ended: 0 })
      expect(await enforce({ statementMs: 1 })).toEqual({ cancelled: 1, ended: 0 })
      for (let check = 0; check < 2; check++) expect(await enforce({ statementMs: 1 })).toEqual({ cancelled: 0, ended: 1 })
      expect(await enforce({ statementMs: 1 })).toEqual({
        ...{ cancelled: 0, ended: 1, suspended: [{ name: 'stubborn', cause: 'statement' }], needsRestart: true },
      })
      await bench.server.crash()
      expect(await bench.admin.findChangedPasswords([tenant])).toEqual(['stubborn'])
      await expect(bench.admin.verify(tenant)).rejects.toThrow()
      await bench.admin.setPassword(tenant)
      await bench.admin.verify(tenant)
    },
    LONG_MS,
  )

  test(
    'requires a restart for such an expression of a tenant that is being deleted',
    async () => {
      await bench.busy(await bench.as(await bench.tenant('deleted')), STUBBORN)
      await bench.admin.drop('deleted')
      // A tenant can ask for its deletion at any time: within its bound the statement may go on.
      for (let check = 0; check < 5; check++) expect(await enforce()).toEqual({ cancelled: 0, ended: 0 })
      for (let check = 0; check < 2; check++) expect(await enforce({ statementMs: 1 })).not.toHaveProperty('needsRestart')
      expect(await enforce({ statementMs: 1 })).toMatchObject({ needsRestart: true })
      await bench.server.crash()
    },
    LONG_MS,
  )

  test(
    'waits for a rollback, however long it takes',
    async () => {
      const session = await bench.as(await bench.tenant('regretful'))
      await session.query('CREATE TABLE t (n INT PRIMARY KEY, x CHAR(200))')
      await session.beginTransaction()
      await session.query("INSERT INTO t VALUES (0, 'x'), (1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x'), (6, 'x'), (7, 'x')")
      for (let rows = 8; rows < 200_000; rows *= 2) await session.query(`INSERT INTO t SELECT n + ${rows}, x FROM t`)
      await bench.busy(session, 'SELECT SLEEP(100)')
      const root = await bench.root()
      await root.query(`KILL ${session.threadId}`)
      for (let check = 0; check < 6; check++) await enforce({ statementMs: 1 })
      expect(await ask(root, 'SELECT 1')).toBe(1)
      await root.end()
    },
    LONG_MS,
  )

  test('is not held up by tenants that hold all their locks and connections', async () => {
    const tenant = await bench.tenant('greedy')
    const sessions = await Promise.all(Array.from({ length: 12 }, () => bench.as(tenant)))
    expect([1203, 1226]).toContain(await errno(bench.as(tenant)))
    await sessions[0]?.query('CREATE TABLE t (n INT)')
    await sessions[0]?.query('LOCK TABLES t WRITE')
    await sessions[1]?.query("SELECT GET_LOCK('mooring', 1)")
    if (sessions[2]) await bench.busy(sessions[2], 'CREATE TABLE u AS SELECT SLEEP(100)')
    expect(await enforce()).toEqual({ cancelled: 0, ended: 0 })
    expect((await bench.admin.sizes('all')).has('greedy')).toBe(true)
    await bench.admin.drop('greedy')
  })
})

describe('enforce on MySQL 8.0', () => {
  const bench = mysqlBench('mysql-8.0.29')

  test('ends sessions whose temporary tables take more than a database may', async () => {
    const session = await bench.as(await bench.tenant('spiller'))
    await session.query('CREATE TEMPORARY TABLE t (x LONGTEXT)')
    await session.query("INSERT INTO t SELECT REPEAT('x', 200000) FROM information_schema.COLLATIONS LIMIT 100")
    expect(await bench.admin.enforce({ ...WIDE, sizeBytes: 100_000_000 })).toEqual({ cancelled: 0, ended: 0 })
    expect(await bench.admin.enforce({ ...WIDE, sizeBytes: 10_000_000 })).toEqual({ cancelled: 0, ended: 1 })
    await expect(session.query('SELECT 1')).rejects.toThrow()
  })
})
