import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { underTest } from '../../../support/families/motors-under-test.ts'
import { ask, errno, rows, until } from '../../../support/mysql/bench.ts'
import { DENIED, neighbours } from '../../../support/mysql/neighbours.ts'
import { MOTORS } from '../../../support/mysql/server.ts'

/** Prepared statements that a server has by default. */
const DEFAULT_PREPARED = 16_382

describe.each(underTest(MOTORS))('a tenant of $motor and its neighbour', ({ motor, family }) => {
  const { bench, asMallory, asVictim, attempt, mallory } = neighbours(motor)

  test.each([
    'USE victim',
    'SELECT * FROM victim.secret',
    'INSERT INTO victim.secret VALUES (2)',
    'CREATE TABLE victim.mine (n INT)',
    'DROP DATABASE victim',
    'ALTER DATABASE victim CHARACTER SET latin1',
    'SELECT victim.f()',
    'SHOW CREATE TABLE victim.secret',
    'LOCK TABLES victim.secret READ',
    'RENAME TABLE own TO victim.own',
    'CREATE EVENT victim.e ON SCHEDULE EVERY 1 DAY DO SELECT 1',
    'SHOW EVENTS FROM victim',
    'CREATE TABLE child (n INT, FOREIGN KEY (n) REFERENCES victim.secret (n))',
    'HANDLER victim.secret OPEN',
    'CREATE DATABASE another',
    'CREATE DATABASE mallory_1',
    'CREATE DATABASE making_mallory',
    'CREATE DATABASE Mallory',
  ])('is denied: %s', async (sql) => {
    expect(DENIED).toContain(await attempt(sql))
  })

  test('privileges name one database without a wildcard', async () => {
    const grants = (await rows(await asMallory(), 'SHOW GRANTS')).flatMap((row) => Object.values(row))
    expect(grants).toHaveLength(2)
    expect(grants.join('\n')).toMatch(/ON `mallory`\.\* TO/)
    expect(grants.join('\n')).not.toMatch(/GRANT OPTION|FILE|SUPER|`mallory[%_]/)
  })

  test('views, triggers, routines and merged tables do not reach the neighbour', async () => {
    const session = await asMallory()
    expect(DENIED).toContain(await errno(session.query('CREATE VIEW v AS SELECT * FROM victim.secret')))
    await session.query('CREATE PROCEDURE p() SELECT * FROM victim.secret')
    expect(DENIED).toContain(await errno(session.query('CALL p()')))
    await session.query('CREATE TRIGGER t BEFORE INSERT ON own FOR EACH ROW SET NEW.n = (SELECT n FROM victim.secret)')
    expect(DENIED).toContain(await errno(session.query('INSERT INTO own VALUES (1)')))
    await session.query('DROP TRIGGER t')
    await session.query('CREATE TABLE part (n INT) ENGINE=MyISAM')
    await (await asVictim()).query('CREATE TABLE part (n INT) ENGINE=MyISAM')
    const merged = await errno(session.query('CREATE TABLE merged (n INT) ENGINE=MERGE UNION=(part, victim.part)'))
    if (merged !== undefined) expect(DENIED).toContain(merged)
    else expect(await errno(session.query('SELECT * FROM merged'))).toBeDefined()
  })

  test('a definer other than the tenant itself is denied', async () => {
    for (const definer of ["'victim'@'%'", "'mooring'@'127.0.0.1'", "'root'@'localhost'"]) {
      expect(DENIED).toContain(await attempt(`CREATE DEFINER=${definer} PROCEDURE q() SELECT 1`))
      expect(DENIED).toContain(await attempt(`CREATE DEFINER=${definer} VIEW w AS SELECT 1`))
      expect(DENIED).toContain(
        await attempt(`CREATE DEFINER=${definer} TRIGGER w BEFORE INSERT ON own FOR EACH ROW SET NEW.n = 1`),
      )
      expect(DENIED).toContain(await attempt(`CREATE DEFINER=${definer} EVENT w ON SCHEDULE EVERY 1 DAY DO SELECT 1`))
    }
  })

  test('neither databases, tables, statements nor sessions of the neighbour are listed', async () => {
    const victim = await asVictim()
    await victim.query('BEGIN')
    await victim.query('UPDATE secret SET n = 1')
    const session = await asMallory()
    expect(await ask(session, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('victim', 'mysql')")).toBe(
      0,
    )
    for (const [table, column] of [
      ['TABLES', 'TABLE_SCHEMA'],
      ['COLUMNS', 'TABLE_SCHEMA'],
      ['ROUTINES', 'ROUTINE_SCHEMA'],
      ['STATISTICS', 'TABLE_SCHEMA'],
      ['KEY_COLUMN_USAGE', 'TABLE_SCHEMA'],
      ['SCHEMA_PRIVILEGES', 'TABLE_SCHEMA'],
    ] as const)
      expect(await ask(session, `SELECT COUNT(*) FROM information_schema.${table} WHERE ${column} = 'victim'`)).toBe(0)
    const users = await rows(session, 'SELECT DISTINCT USER AS user FROM information_schema.PROCESSLIST')
    expect(users).toEqual([{ user: 'mallory' }])
    const sys = motor === 'mysql-8.0.29' ? 'INNODB_TABLES' : 'INNODB_SYS_TABLES'
    for (const table of ['INNODB_TRX', sys, 'INNODB_BUFFER_PAGE', 'INNODB_METRICS'])
      expect(DENIED).toContain(await errno(session.query(`SELECT * FROM information_schema.${table} LIMIT 1`)))
    await victim.query('ROLLBACK')
  })

  test('KILL of a session of the neighbour or of the administrator is denied', async () => {
    const victim = await asVictim()
    const root = await bench.root()
    for (const { threadId } of [victim, root]) {
      expect(DENIED).toContain(await attempt(`KILL ${threadId}`))
      expect(DENIED).toContain(await attempt(`KILL QUERY ${threadId}`))
    }
    // MariaDB accepts the statement, and ends no session of another account.
    if (family === 'mariadb') expect(await attempt('KILL USER victim')).toBeUndefined()
    expect(await ask(root, 'SELECT 1')).toBe(1)
    expect(await ask(victim, 'SELECT 1')).toBe(1)
  })

  test('twelve sessions are the most, and neither the neighbour nor the administrator lacks one then', async () => {
    await Promise.all(Array.from({ length: 12 }, () => asMallory()))
    expect([1203, 1226]).toContain(await errno(asMallory()))
    expect(await ask(await asVictim(), 'SELECT 1')).toBe(1)
    await bench.admin.verify(await bench.tenant('third'))
  })

  test('connections that never log in are closed after 2 s', async () => {
    const root = await bench.root()
    expect(Number(await ask(root, 'SELECT @@connect_timeout'))).toBe(2)
    const { host, port } = bench.server.target
    const silent = connect(port, host).resume()
    // MariaDB resets the connection.
    await once(silent, 'close').catch((error: unknown) => expect(error).toMatchObject({ code: 'ECONNRESET' }))
    expect(await ask(await asVictim(), 'SELECT 1')).toBe(1)
  })

  test('prepared statements of one tenant leave as many as its neighbour needs', async () => {
    const session = await bench.server.client({
      ...{ user: mallory.name, password: mallory.password, multipleStatements: true },
    })
    try {
      await session.query(Array.from({ length: DEFAULT_PREPARED }, (_, n) => `PREPARE p${n} FROM 'DO 1'`).join(';'))
      expect((await (await asVictim()).execute('SELECT 1 AS one'))[0]).toEqual([{ one: 1 }])
    } finally {
      session.destroy()
    }
  })

  test('failed logins block no other login from the same address', async () => {
    for (let time = 0; time < 120; time++) await errno(bench.as({ ...mallory, password: 'wrong' }))
    expect(await ask(await asVictim(), 'SELECT 1')).toBe(1)
  })

  test('its own database can be dropped and made anew with the same privileges', async () => {
    const tenant = await bench.tenant('renewer')
    const session = await bench.as(tenant)
    await session.query('DROP DATABASE renewer')
    await session.query('CREATE DATABASE renewer')
    await session.query('CREATE TABLE renewer.t (n INT)')
    await bench.admin.drop('renewer')
    expect(await errno(bench.as(tenant))).toBe(1045)
  })

  test('stays open: GET_LOCK has one set of names for all tenants', async () => {
    const session = await asMallory()
    expect(await ask(session, "SELECT GET_LOCK('migrations', 0)")).toBe(1)
    expect(await ask(await asVictim(), "SELECT GET_LOCK('migrations', 0)")).toBe(0)
  })

  test('stays open: a prepared XA transaction whose session has ended can be rolled back by any tenant', async () => {
    const victim = await asVictim()
    for (const sql of ["XA START 'v'", 'INSERT INTO secret VALUES (3)', "XA END 'v'", "XA PREPARE 'v'"]) await victim.query(sql)
    expect(await attempt("XA ROLLBACK 'v'")).toBe(1397)
    victim.destroy()
    await until(async () => (await attempt("XA ROLLBACK 'v'")) === undefined)
    expect(await ask(await asVictim(), 'SELECT COUNT(*) FROM secret')).toBe(1)
  })

  test('stays open: variables and counters of the whole server are readable; paths in them are neutral', async () => {
    const session = await asMallory()
    expect(await rows(session, "SHOW GLOBAL STATUS LIKE 'Uptime'")).toHaveLength(1)
    const text = JSON.stringify(await rows(session, 'SHOW GLOBAL VARIABLES'))
    expect(text).not.toContain(bench.server.data)
    expect(text).not.toContain('victim')
  })
})
