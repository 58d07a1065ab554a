import { describe, expect, test } from 'vitest'
import type { Tenant } from '../../../operator/engines/engine.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { ask, codeOf, errno, LIMITS, type MysqlBench, mysqlBench, rows } from '../../support/mysql/bench.ts'
import { nestedViews, TOP_VIEW } from '../../support/mysql/nested-views.ts'
import { MOTORS } from '../../support/mysql/server.ts'

/** Levels of views that take several times as long to open as the engine allows. */
const LEVELS = 13

interface Templates {
  /** Claims a template, and runs statements as its tenant. */
  readonly template: (name: string, statements: readonly string[]) => Promise<void>
  /** Claims `copy` as a copy of `source`, whose sessions must have ended. */
  readonly copyOf: (source: string, copy: string) => Promise<Tenant>
}

function templatesOf(bench: MysqlBench): Templates {
  return {
    async copyOf(source, copy) {
      const tenant = { name: copy, password: `password-of-${copy}` }
      await bench.admin.claim(tenant, LIMITS, { template: source })
      await bench.admin.verify(tenant)
      return tenant
    },
    async template(name, statements) {
      const session = await bench.as(await bench.tenant(name))
      for (const statement of statements) await session.query(statement)
      await session.end()
    },
  }
}

const EVENTS = `SELECT EVENT_NAME AS name, TIME_ZONE AS zone, CAST(STARTS AS CHAR) AS starts, CAST(EXECUTE_AT AS CHAR) AS at, STATUS AS status,
  ON_COMPLETION AS kept, EVENT_COMMENT AS comment FROM information_schema.EVENTS ORDER BY EVENT_NAME`

describe.each(underTest(MOTORS))('a template of $motor', ({ motor }) => {
  const bench = mysqlBench(motor)

  const { template, copyOf } = templatesOf(bench)

  test('is copied with tables, foreign keys, character sets, generated columns and data', async () => {
    await template('source', [
      'ALTER DATABASE source CHARACTER SET latin1 COLLATE latin1_german1_ci',
      'CREATE TABLE zone (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) CHARACTER SET utf8mb4) AUTO_INCREMENT=40',
      `CREATE TABLE a_child (id INT PRIMARY KEY, zone_id INT, price INT, b BIT(3), d DATETIME(6), j BLOB,
         double_price INT GENERATED ALWAYS AS (price * 2) STORED, half INT GENERATED ALWAYS AS (price / 2) VIRTUAL,
         KEY by_half (half), CONSTRAINT to_zone FOREIGN KEY (zone_id) REFERENCES zone (id) ON DELETE CASCADE) COMMENT 'source.zone'`,
      "INSERT INTO zone (name) VALUES ('Zoë 🚢'), ('b')",
      "INSERT INTO a_child (id, zone_id, price, b, d, j) VALUES (0, 40, 10, b'101', '2024-02-29 12:00:00.123456', x'00ff')",
      'CREATE TABLE heap (n INT) ENGINE=MyISAM',
      'INSERT INTO heap VALUES (7)',
      'CREATE TABLE parts (n INT) PARTITION BY HASH (n) PARTITIONS 3',
      'INSERT INTO parts VALUES (1), (2), (3)',
      "SET sql_mode = ''",
      "CREATE TABLE zeros (d DATE NOT NULL DEFAULT '0000-00-00', `od``d name` INT)",
      "INSERT INTO zeros VALUES ('0000-00-00', 1)",
    ])
    const session = await bench.as(await copyOf('source', 'copied'))
    expect(await ask(session, 'SELECT name FROM zone WHERE id = 40')).toBe('Zoë 🚢')
    expect(
      await rows(session, 'SELECT id, double_price, half, b + 0 AS b, HEX(j) AS j, CAST(d AS CHAR) AS d FROM a_child'),
    ).toEqual([{ id: 0, double_price: 20, half: 5, b: 5, j: '00FF', d: '2024-02-29 12:00:00.123456' }])
    expect(await ask(session, 'SELECT SUM(n) FROM heap')).toBe('7')
    expect(await ask(session, 'SELECT COUNT(*) FROM parts PARTITION (p1)')).toBe(1)
    expect(await ask(session, 'SELECT CAST(d AS CHAR) FROM zeros')).toBe('0000-00-00')
    expect(await ask(session, 'SELECT @@collation_database')).toBe('latin1_german1_ci')
    await session.query("INSERT INTO zone (name) VALUES ('c')")
    expect(await ask(session, 'SELECT MAX(id) FROM zone')).toBe(42)
    await session.query('DELETE FROM zone WHERE id = 40')
    expect(await ask(session, 'SELECT COUNT(*) FROM a_child')).toBe(0)
    const created = Object.values((await rows(session, 'SHOW CREATE TABLE a_child'))[0] ?? {})[1]
    expect(created).toContain("COMMENT='source.zone'")
  })

  test('is copied with foreign keys that form a circle', async () => {
    await template('circle', [
      'CREATE TABLE a (id INT PRIMARY KEY, b INT)',
      "CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE) COMMENT 'it''s b'",
      'ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE',
      'INSERT INTO a VALUES (1, NULL), (2, NULL)',
      'INSERT INTO b VALUES (1, 1)',
      'UPDATE a SET b = 1 WHERE id = 2',
    ])
    const session = await bench.as(await copyOf('circle', 'newcircle'))
    await session.query('DELETE FROM b WHERE id = 1')
    expect(await rows(session, 'SELECT id FROM a')).toEqual([{ id: 1 }])
    await session.query('INSERT INTO b VALUES (3, 1)')
    await session.query('DELETE FROM a WHERE id = 1')
    expect(await rows(session, 'SELECT id FROM b')).toEqual([])
    expect(Object.values((await rows(session, 'SHOW CREATE TABLE b'))[0] ?? {})[1]).toContain("COMMENT='it''s b'")
  })

  test('is copied with views, triggers, routines and events, which belong to the new tenant', async () => {
    await template('programs', [
      'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, note TEXT)',
      'CREATE FUNCTION plus_one(x INT) RETURNS INT DETERMINISTIC RETURN x + 1',
      'CREATE PROCEDURE fill(IN times INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < times DO INSERT INTO t (n) VALUES (i); SET i = i + 1; END WHILE; END',
      'CREATE VIEW v AS SELECT id, plus_one(n) AS m FROM t',
      "CREATE VIEW a_view_of_v AS SELECT m, 'programs.t' AS word FROM programs.v",
      "CREATE TRIGGER first_one BEFORE INSERT ON t FOR EACH ROW SET NEW.note = CONCAT('1', (SELECT COUNT(*) FROM programs.t))",
      "CREATE TRIGGER second_one BEFORE INSERT ON t FOR EACH ROW FOLLOWS first_one SET NEW.note = CONCAT(NEW.note, '/2')",
      'INSERT INTO t (n) VALUES (5)',
      'CREATE TABLE gone (n INT)',
      'CREATE VIEW broken AS SELECT n FROM gone',
      'DROP TABLE gone',
      `SET time_zone = '+05:00', timestamp = 1500000000`,
      "CREATE EVENT once ON SCHEDULE AT '2017-08-01 00:00:00' ON COMPLETION PRESERVE COMMENT 'c' DO INSERT INTO programs.t (n) VALUES (9)",
      "CREATE EVENT daily ON SCHEDULE EVERY 1 DAY STARTS '2017-08-01 00:00:00' DISABLE DO DELETE FROM t",
      `SET sql_mode = 'ANSI_QUOTES', timestamp = DEFAULT`,
      `CREATE FUNCTION ansi() RETURNS INT DETERMINISTIC RETURN (SELECT COUNT(*) FROM "programs"."t" WHERE "note" = 'programs.t')`,
    ])
    const session = await bench.as(await copyOf('programs', 'newprograms'))
    expect(await rows(session, 'SELECT * FROM a_view_of_v')).toEqual([{ m: 6, word: 'programs.t' }])
    await session.query('CALL fill(2)')
    expect(await rows(session, 'SELECT n, note FROM t ORDER BY id')).toEqual([
      { n: 5, note: '10/2' },
      { n: 0, note: '11/2' },
      { n: 1, note: '12/2' },
    ])
    expect(await ask(session, 'SELECT ansi()')).toBe(0)
    expect(await rows(session, EVENTS)).toMatchObject([
      { name: 'daily', zone: '+05:00', starts: '2017-08-01 00:00:00', status: 'DISABLED' },
      { name: 'once', zone: '+05:00', at: '2017-08-01 00:00:00', status: 'ENABLED', kept: 'PRESERVE', comment: 'c' },
    ])
    const root = await bench.root()
    const sources = ['VIEWS WHERE TABLE', 'ROUTINES WHERE ROUTINE', 'TRIGGERS WHERE TRIGGER', 'EVENTS WHERE EVENT']
    const definers = sources.map(
      (source) => `SELECT DISTINCT DEFINER AS definer FROM information_schema.${source}_SCHEMA = 'newprograms'`,
    )
    expect(await rows(root, definers.join(' UNION '))).toEqual([{ definer: 'newprograms@%' }])
    // The copy stays whole when its template is dropped, and none of its objects runs with the rights of another account.
    await bench.admin.drop('programs')
    await session.query('CALL fill(1)')
    expect(await ask(session, 'SELECT COUNT(*) FROM v')).toBe(4)
  })

  test('that is missing or has sessions is refused, and nothing is left', async () => {
    const claim = (name: string, from: string) => codeOf(bench.admin.claim({ name, password: 'x' }, LIMITS, { template: from }))
    expect(await claim('orphan', 'nowhere')).toBe('template_missing')
    expect(await claim('orphan', 'mysql')).toBe('template_missing')
    const tenant = await bench.tenant('busy')
    const session = await bench.as(tenant)
    expect(await claim('orphan', 'busy')).toBe('template_in_use')
    expect((await bench.admin.catalog()).tenants.has('orphan')).toBe(false)
    await session.end()
    await copyOf('busy', 'orphan')
  })

  test('is copied by a reset, which is refused without touching the database while sessions are open on it', async () => {
    await template('origin', ['CREATE TABLE t (n INT)', 'INSERT INTO t VALUES (1)'])
    const copy = await copyOf('origin', 'restored')
    await (await bench.as(copy)).query('UPDATE t SET n = 2')
    const session = await bench.as({ name: 'origin', password: 'password-of-origin' })
    expect(await codeOf(bench.admin.reset('restored', { template: 'origin' }))).toBe('template_in_use')
    expect(await ask(await bench.as(copy), 'SELECT n FROM t')).toBe(2)
    await session.end()
    await bench.admin.reset('restored', { template: 'origin' })
    expect(await ask(await bench.as(copy), 'SELECT n FROM t')).toBe(1)
  })

  test('is copied anew when a crash interrupted the copy', async () => {
    await template('interrupted', ['CREATE TABLE t (n INT)', 'INSERT INTO t VALUES (1)'])
    const root = await bench.root()
    await root.query('CREATE DATABASE making_half; CREATE DATABASE half; CREATE TABLE half.t (n INT)')
    expect(await ask(await bench.as(await copyOf('interrupted', 'half')), 'SELECT n FROM t')).toBe(1)
    expect((await bench.admin.catalog()).leftovers).toEqual([])
  })

  test('whose views take too long to open is refused, and nothing is lost or left', async () => {
    await template('deep', ['CREATE TABLE kept (n INT)'])
    await copyOf('deep', 'shallow')
    const session = await bench.as({ name: 'deep', password: 'password-of-deep' })
    for (const statement of nestedViews(LEVELS)) await session.query(statement)
    await session.query(`CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM ${TOP_VIEW})`)
    await session.end()
    const refused = { code: 'template_not_copyable', message: expect.stringContaining(`the view ${TOP_VIEW} `) as string }
    const claim = bench.admin.claim({ name: 'orphaned', password: 'x' }, LIMITS, { template: 'deep' })
    await expect(claim).rejects.toMatchObject(refused)
    await expect(bench.admin.reset('shallow', { template: 'deep' })).rejects.toMatchObject(refused)
    const { tenants, leftovers } = await bench.admin.catalog()
    expect([tenants.has('orphaned'), leftovers]).toEqual([false, []])
    const copy = await bench.as({ name: 'shallow', password: 'password-of-shallow' })
    expect(await rows(copy, 'SHOW TABLES')).toEqual([{ Tables_in_shallow: 'kept' }])
    await bench.admin.drop('deep')
    expect(await bench.admin.find('deep')).toEqual({ database: false, login: 'absent' })
  })

  test('gives its copy no rights of the administrator, whatever its text contains', async () => {
    await template('hostile', [
      'CREATE TABLE t (n INT)',
      'CREATE FUNCTION f() RETURNS INT DETERMINISTIC /* */ RETURN 1 -- DEFINER=`mooring`@`127.0.0.1`',
      'CREATE VIEW v AS SELECT \'*/; DROP DATABASE mysql; --\' AS x, "DEFINER=`root`@`localhost`" AS y',
      `SET sql_mode = 'NO_BACKSLASH_ESCAPES'`,
      String.raw`CREATE FUNCTION g() RETURNS TEXT DETERMINISTIC RETURN '\'`,
      String.raw`CREATE PROCEDURE p() SQL SECURITY DEFINER SELECT CURRENT_USER() AS me, '\' AS x, 'hostile.t' AS y`,
    ])
    const session = await bench.as(await copyOf('hostile', 'victims'))
    const [[me]] = (await session.query('CALL p()'))[0] as unknown as [[Record<string, unknown>]]
    expect(me).toEqual({ me: 'victims@%', x: '\\', y: 'hostile.t' })
    expect(await ask(session, 'SELECT g()')).toBe('\\')
    expect(await rows(session, 'SELECT * FROM v')).toEqual([
      { x: '*/; DROP DATABASE mysql; --', y: 'DEFINER=`root`@`localhost`' },
    ])
    expect(await errno(session.query('SELECT * FROM hostile.t'))).toBe(1142)
  })

  test('of which a table is locked is refused', async () => {
    await template('locked', ['CREATE TABLE t (n INT)'])
    const root = await bench.root()
    await root.query('LOCK TABLES locked.t WRITE')
    expect(await codeOf(bench.admin.claim({ name: 'unlocked', password: 'x' }, LIMITS, { template: 'locked' }))).toBe(
      'template_in_use',
    )
    await root.end()
    await copyOf('locked', 'unlocked')
  })

  test('makes writes of new sessions wait while it is copied', async () => {
    await template('large', [
      'CREATE TABLE a_first (n INT)',
      'CREATE TABLE t (n INT PRIMARY KEY AUTO_INCREMENT, x TEXT)',
      "INSERT INTO t (x) SELECT REPEAT('x', 2000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b LIMIT 20000",
      'CREATE TABLE z_last (n INT)',
    ])
    const root = await bench.root()
    const isCopying = async () =>
      (await rows(root, "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO `copyoflarge%`.`t`%'"))
        .length > 0
    /** Starts copies until one is seen at its second table: a busy machine can miss a short one. */
    async function seenCopy(attempt = 1): Promise<{ readonly copying: ReturnType<typeof copyOf> }> {
      const copying = copyOf('large', `copyoflarge${attempt}`)
      const progress: { isOver: boolean } = { isOver: false }
      const over = copying.then(() => (progress.isOver = true))
      while (!progress.isOver) if (await isCopying()) return { copying }
      await over
      return seenCopy(attempt + 1)
    }
    const { copying } = await seenCopy()
    const session = await bench.as({ name: 'large', password: 'password-of-large' })
    await session.query('INSERT INTO z_last VALUES (1)')
    const copy = await bench.as(await copying)
    expect(await rows(copy, 'SELECT (SELECT COUNT(*) FROM t) AS t, (SELECT COUNT(*) FROM z_last) AS z')).toEqual([
      { t: 20_000, z: 0 },
    ])
  })
})

describe('a template of MariaDB', () => {
  const bench = mysqlBench('mariadb-10.7.4')
  const { template, copyOf } = templatesOf(bench)

  test('is copied with sequences, history of rows, packages and invisible columns', async () => {
    await template('special', [
      'CREATE SEQUENCE s START WITH 100 INCREMENT BY 5 NOCACHE',
      'CREATE TABLE with_sequence (id INT DEFAULT (NEXT VALUE FOR s), hidden INT INVISIBLE DEFAULT 3, n INT)',
      'INSERT INTO with_sequence (n, hidden) VALUES (1, 9)',
      'CREATE TABLE versioned (n INT) WITH SYSTEM VERSIONING',
      'INSERT INTO versioned VALUES (1)',
      'UPDATE versioned SET n = 2',
      'CREATE TABLE checked (n INT CHECK (n > 0))',
      'SET check_constraint_checks = 0',
      'INSERT INTO checked VALUES (-1)',
      'CREATE AGGREGATE FUNCTION total(x INT) RETURNS INT BEGIN DECLARE s INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN s; LOOP FETCH GROUP NEXT ROW; SET s = s + x; END LOOP; END',
      "SET sql_mode = 'ORACLE'",
      'CREATE PACKAGE tools AS FUNCTION three RETURN INT; END',
      'CREATE PACKAGE BODY tools AS FUNCTION three RETURN INT AS BEGIN RETURN 3; END; END',
    ])
    const session = await bench.as(await copyOf('special', 'newspecial'))
    await session.query('INSERT INTO with_sequence (n) VALUES (2)')
    expect(await rows(session, 'SELECT id, hidden, n FROM with_sequence ORDER BY n')).toEqual([
      { id: 100, hidden: 9, n: 1 },
      { id: 105, hidden: 3, n: 2 },
    ])
    expect(await rows(session, 'SELECT n FROM versioned FOR SYSTEM_TIME ALL ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }])
    expect(await rows(session, 'SELECT n FROM checked')).toEqual([{ n: -1 }])
    expect(await ask(session, 'SELECT total(n) FROM with_sequence')).toBe(3)
    await session.query("SET sql_mode = 'ORACLE'")
    expect(await ask(session, 'SELECT tools.three()')).toBe(3)
  })
})
