import type { Connection } from 'mysql2/promise'
import { describe, expect, test } from 'vitest'
import { LoginState } from '../../../operator/engines/engine.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { LIMITS, mysqlBench, rows, until } from '../../support/mysql/bench.ts'
import { MOTORS } from '../../support/mysql/server.ts'

const ABSENT = { database: false, login: LoginState.absent }

/** Statements with which a tenant holds locks; the last one may take long. */
const HOLDERS: readonly { readonly what: string; readonly statements: readonly string[] }[] = [
  { what: 'LOCK TABLES', statements: ['LOCK TABLES t WRITE'] },
  { what: 'an open transaction', statements: ['BEGIN', 'INSERT INTO t VALUES (1)', 'SELECT * FROM v'] },
  { what: 'a table that is being created', statements: ['CREATE TABLE slow AS SELECT SLEEP(1000)'] },
  { what: 'a running statement', statements: ['SELECT SLEEP(1000) FROM v'] },
  { what: 'GET_LOCK', statements: ["SELECT GET_LOCK('any', 1)", "SELECT GET_LOCK('other', 1)"] },
  { what: 'a handler', statements: ['HANDLER t OPEN', 'HANDLER t READ FIRST'] },
]

describe.each(underTest(MOTORS))('locks of a tenant on $motor', ({ motor }) => {
  const bench = mysqlBench(motor)

  async function hold(name: string, statements: readonly string[]): Promise<Connection> {
    const session = await bench.as(await bench.tenant(name))
    await session.query('CREATE TABLE t (n INT)')
    await session.query('INSERT INTO t VALUES (1)')
    await session.query('CREATE VIEW v AS SELECT * FROM t')
    for (const statement of statements.slice(0, -1)) await session.query(statement)
    const last = session.query(statements.at(-1) ?? '').then(
      () => 'done',
      () => 'failed',
    )
    const root = await bench.root()
    const running = `SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ${session.threadId} AND STATE = 'User sleep'`
    let isDone = false
    void last.then(() => (isDone = true))
    await until(async () => isDone || (await rows(root, running)).length > 0)
    return session
  }

  test.each(HOLDERS)('$what: delays neither a rotation, nor disabling, a reset or a drop', async ({ statements }) => {
    const name = 'holder'
    await hold(name, statements)
    await bench.admin.setPassword({ name, password: 'second' })
    await bench.admin.drop(name)
    await hold(name, statements)
    await bench.admin.disableLogin(name)
    await bench.admin.drop(name)
    await hold(name, statements)
    await bench.admin.reset(name, {})
    expect(await rows(await bench.as({ name, password: `password-of-${name}` }), 'SHOW TABLES')).toEqual([])
    await bench.admin.drop(name)
    expect(await bench.admin.find(name)).toEqual(ABSENT)
  })

  test('claims and drops of neighbours pass while a tenant holds all kinds of locks with all its connections', async () => {
    for (const [index, { statements }] of HOLDERS.entries()) await hold(`locker${index}`, statements)
    await bench.admin.verify(await bench.tenant('neighbour'))
    await bench.admin.claim({ name: 'neighbour', password: 'second' }, LIMITS, {})
    await bench.admin.drop('neighbour')
    await bench.admin.catalog()
    // Takes at most some 2 s for each database that is locked.
    await bench.admin.sizes('all')
    for (const index of HOLDERS.keys()) await bench.admin.drop(`locker${index}`)
  })

  test('a prepared XA transaction without a session does not prevent a drop, and one with a session stays', async () => {
    const prepare = async (session: Connection, xid: string) => {
      for (const sql of [`XA START ${xid}`, 'INSERT INTO t VALUES (1)', `XA END ${xid}`, `XA PREPARE ${xid}`])
        await session.query(sql)
    }
    const root = await bench.root()
    const kept = await bench.as(await bench.tenant('kept'))
    await kept.query('CREATE TABLE t (n INT)')
    await prepare(kept, "'attached'")
    const left = await bench.as(await bench.tenant('left'))
    await left.query('CREATE TABLE t (n INT)')
    await prepare(left, "'detached'")
    left.destroy()
    await bench.admin.drop('left')
    expect(await rows(root, 'XA RECOVER')).toHaveLength(1)
    await kept.query("XA COMMIT 'attached'")
    expect(await rows(kept, 'SELECT * FROM t')).toEqual([{ n: 1 }])
    await bench.admin.enforce({ statementMs: 1e9, idleTransactionMs: 0, sizeBytes: 1e12 })
    await until(async () => {
      await bench.admin.enforce({ statementMs: 1e9, idleTransactionMs: 1, sizeBytes: 1e12 })
      return (await rows(root, 'XA RECOVER')).length === 0
    })
  })
})
