import { readdir } from 'node:fs/promises'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { underTest } from '../../../support/families/motors-under-test.ts'
import { ask, errno, rows } from '../../../support/mysql/bench.ts'
import { DENIED, neighbours } from '../../../support/mysql/neighbours.ts'
import { MOTORS } from '../../../support/mysql/server.ts'

const FOR_ALL = [
  "CREATE USER 'friend'@'%'",
  "DROP USER 'victim'@'%'",
  "SET PASSWORD FOR 'victim'@'%' = '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
  "RENAME USER 'victim'@'%' TO 'v'@'%'",
  "GRANT ALL ON mallory.* TO 'victim'@'%'",
  "ALTER USER 'mallory'@'%' WITH MAX_USER_CONNECTIONS 1000",
  "ALTER USER 'mallory'@'%' REQUIRE NONE",
  "ALTER USER 'mallory'@'%' ACCOUNT UNLOCK",
  'SELECT * FROM mysql.user',
  'SELECT * FROM mysql.db',
  "UPDATE mysql.db SET Db = '%'",
  'SET GLOBAL event_scheduler = ON',
  'SET GLOBAL general_log = ON',
  'SET GLOBAL local_infile = ON',
  'SET GLOBAL max_connections = 1',
  'SET GLOBAL innodb_file_per_table = OFF',
  'SET SESSION sql_log_bin = 0',
  'SHUTDOWN',
  'FLUSH TABLES WITH READ LOCK',
  'FLUSH TABLES',
  'FLUSH PRIVILEGES',
  'FLUSH LOGS',
  'RESET QUERY CACHE',
  'SHOW ENGINE INNODB STATUS',
  'SHOW MASTER STATUS',
  'SHOW SLAVE STATUS',
  'SHOW BINARY LOGS',
  "CHANGE MASTER TO MASTER_HOST = '127.0.0.1'",
  "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1')",
  "INSTALL PLUGIN x SONAME 'ha_federated.so'",
  "CREATE FUNCTION sys_exec RETURNS INT SONAME 'lib_mysqludf_sys.so'",
  "SELECT 1 INTO OUTFILE '/tmp/out'",
  "SELECT 1 INTO DUMPFILE '/tmp/out'",
  "LOAD DATA INFILE '/etc/passwd' INTO TABLE own",
  "BINLOG 'AAAA'",
]

const BY_FAMILY: Readonly<Record<string, readonly string[]>> = {
  'mariadb-10.7.4': [
    'CREATE ROLE friends',
    'BACKUP STAGE START',
    'SET SESSION enforce_storage_engine = InnoDB',
    "SHOW CREATE USER 'victim'@'%'",
    'SELECT * FROM mysql.global_priv',
    'SET GLOBAL max_statement_time = 1',
    "GRANT PROXY ON 'mooring'@'127.0.0.1' TO 'mallory'@'%'",
  ],
  'mysql-8.0.29': [
    'CREATE ROLE friends',
    'LOCK INSTANCE FOR BACKUP',
    'SET PERSIST max_connections = 1',
    'RESTART',
    'XA RECOVER',
    'ALTER INSTANCE ROTATE INNODB MASTER KEY',
    "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd'",
    "SHOW CREATE USER 'victim'@'%'",
    'SET SESSION session_track_gtids = OWN_GTID, SESSION binlog_format = ROW',
    'CREATE RESOURCE GROUP g TYPE = USER',
    "GRANT PROXY ON 'mooring'@'127.0.0.1' TO 'mallory'@'%'",
  ],
  'mysql-5.7.38': [
    "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd' ENGINE=InnoDB",
    "SHOW CREATE USER 'victim'@'%'",
    "GRANT PROXY ON 'mooring'@'127.0.0.1' TO 'mallory'@'%'",
    'ALTER INSTANCE ROTATE INNODB MASTER KEY',
  ],
}

/** Errors of a statement that the server rejects before it looks at privileges: its version has no such statement, or no binary log. */
const ABSENT_FEATURE: readonly unknown[] = [1064, 1381, 1193, 1238]
/** XAER_RMERR: without the privilege MySQL 8.0 does not list prepared transactions. */
const NOT_LISTED = 1401

describe.each(underTest(MOTORS))('a tenant of $motor and its server', ({ motor, family }) => {
  const { bench, asMallory, attempt, mallory } = neighbours(motor)

  test.each([...FOR_ALL, ...(BY_FAMILY[motor] ?? [])])('is denied: %s', async (sql) => {
    const found = await attempt(sql)
    expect([...DENIED, ...ABSENT_FEATURE, NOT_LISTED]).toContain(found)
  })

  test('LOAD DATA LOCAL INFILE is refused by the server', async () => {
    const session = await bench.server.client({
      ...{ user: mallory.name, password: mallory.password, database: mallory.name, flags: ['+LOCAL_FILES'] },
      infileStreamFactory: () => {
        throw new Error('the server asked for a file')
      },
    })
    expect([1148, 3948, 4166]).toContain(await errno(session.query("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE own")))
    session.destroy()
  })

  test('buffers of a session have a ceiling', async () => {
    const session = await asMallory()
    for (const [name, most] of [
      ['sort_buffer_size', 16],
      ['join_buffer_size', 16],
      ['read_rnd_buffer_size', 16],
      ['max_heap_table_size', 64],
      ['tmp_table_size', 64],
    ] as const) {
      await session.query(`SET SESSION ${name} = 4294967296`)
      expect(Number(await ask(session, `SELECT @@SESSION.${name}`))).toBeLessThanOrEqual(most * 1_048_576)
    }
  })

  test('an event is kept, and no thread runs events', async () => {
    const session = await asMallory()
    await session.query('CREATE EVENT soon ON SCHEDULE EVERY 1 SECOND DO INSERT INTO own VALUES (2)')
    await session.query('CREATE EVENT late ON SCHEDULE AT NOW() + INTERVAL 1 DAY DO SET GLOBAL max_connections = 1')
    expect((await rows(session, 'SHOW EVENTS')).map(({ Name: name }) => name)).toEqual(['late', 'soon'])
    const root = await bench.root()
    const threads = "SELECT USER FROM information_schema.PROCESSLIST WHERE USER = 'event_scheduler'"
    expect(await rows(root, threads)).toEqual([])
    // MariaDB has no value that keeps the administrator from it and lets tenants keep events.
    const CANNOT_CHANGE = 1290
    if (family === 'mysql') expect(await errno(root.query('SET GLOBAL event_scheduler = ON'))).toBe(CANNOT_CHANGE)
    expect(DENIED).toContain(await attempt('SET GLOBAL event_scheduler = ON'))
    expect(await rows(session, 'SELECT n FROM own WHERE n = 2')).toEqual([])
  })

  test('files of the server are not readable', async () => {
    expect(await ask(await asMallory(), "SELECT LOAD_FILE('/etc/passwd')")).toBeNull()
  })

  test.each(['MyISAM', 'InnoDB'])('DATA DIRECTORY places no file of a table of %s outside of the data', async (engine) => {
    const session = await asMallory()
    const create = `CREATE TABLE outside_${engine} (n INT) ENGINE=${engine} DATA DIRECTORY='/tmp'`
    const denied = await errno(session.query(`${create}${engine === 'MyISAM' ? " INDEX DIRECTORY='/tmp'" : ''}`))
    // MySQL requires the privilege FILE; MariaDB ignores the options without symbolic links.
    if (denied !== undefined) expect(DENIED).toContain(denied)
    else expect(JSON.stringify(await rows(session, `SHOW CREATE TABLE outside_${engine}`))).not.toContain('DIRECTORY')
    expect(await ask(session, 'SELECT @@have_symlink')).toBe('DISABLED')
  })

  test('the settings that isolation rests on are in force', async () => {
    const root = await bench.root()
    const shown = await rows(root, 'SHOW GLOBAL VARIABLES')
    const settings = Object.fromEntries(shown.map(({ Variable_name: name, Value: value }) => [String(name), String(value)]))
    expect(settings).toMatchObject({
      local_infile: 'OFF',
      event_scheduler: family === 'mariadb' ? 'OFF' : 'DISABLED',
      general_log: 'OFF',
      slow_query_log: 'OFF',
      skip_name_resolve: 'ON',
      performance_schema: 'OFF',
      host_cache_size: '0',
      log_bin: 'OFF',
      character_set_server: 'utf8mb4',
      innodb_temp_data_file_path: 'ibtmp1:12M:autoextend:max:2G',
    })
    if (family === 'mysql') {
      expect(settings.innodb_undo_log_truncate).toBe('ON')
      expect((await readdir(bench.server.data)).filter((name) => /^undo_?00[12]$/.test(name))).toHaveLength(2)
    }
    expect(settings).toMatchObject({
      secure_file_priv: expect.stringMatching(family === 'mariadb' ? /share\/charsets\/$/ : /^(NULL)?$/) as string,
    })
  })

  test('accounts are the administrator’s, the tenants’ and locked ones of the server', async () => {
    const root = await bench.root()
    const accounts = await rows(root, 'SELECT User AS user, Host AS host FROM mysql.user')
    const names = accounts
      .map(({ user, host }) => `${String(user)}@${String(host)}`)
      .filter((name) => !/^(mysql|mariadb)\./.test(name))
    expect(new Set(names)).toEqual(new Set(['mooring@127.0.0.1', 'mallory@%', 'victim@%']))
    for (const user of ['root', 'mooring', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'mariadb.sys', ''])
      for (const password of ['', 'root']) expect(await errno(bench.server.client({ user, password }))).toBeDefined()
  })

  test('the administrator’s password is not in a file beside the data', async () => {
    const configured = await readFile(join(bench.server.data, '../config/admin.sql'), 'utf8')
    expect(configured).not.toContain(bench.server.target.password)
    expect(configured).not.toContain('throw-away')
  })

  test('harden refuses a server that runs with unsafe settings, and removes open accounts', async () => {
    const root = await bench.root()
    await root.query("CREATE USER ''@'%'; CREATE USER 'root'@'%' IDENTIFIED BY ''; CREATE DATABASE test")
    await bench.admin.harden()
    expect(await rows(root, "SELECT User FROM mysql.user WHERE User IN ('', 'root')")).toEqual([])
    await root.query('SET GLOBAL local_infile = ON')
    await expect(bench.admin.harden()).rejects.toMatchObject({ code: 'server_unsafe' })
    await root.query('SET GLOBAL local_infile = OFF')
    await bench.admin.harden()
  })
})
