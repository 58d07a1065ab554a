import { tmpdir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { LoginState, type Tenant } from '../../../operator/engines/engine.ts'
import { ENGINES } from '../../../operator/engines/index.ts'
import { mariadb, mysql } from '../../../operator/engines/mysql/mysql.ts'
import { underTest } from '../../support/families/motors-under-test.ts'
import { ask, codeOf, errno, LIMITS, mysqlBench, rows, until } from '../../support/mysql/bench.ts'
import { nestedViews } from '../../support/mysql/nested-views.ts'
import { MOTORS, startMysql } from '../../support/mysql/server.ts'
import { LATER } from '../../support/patience.ts'

const WHOLE = { database: true, login: LoginState.enabled }
const ABSENT = { database: false, login: LoginState.absent }

describe.each(underTest(MOTORS))('the administration of $motor', ({ motor, version }) => {
  const bench = mysqlBench(motor)

  test('version returns the version that the server reports', async () => {
    expect(await bench.admin.version()).toBe(version)
  })

  test('claim creates a database that only its login uses, which verify accepts', async () => {
    const tenant = await bench.tenant('claimed')
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('claimed')).toEqual(WHOLE)
    const session = await bench.as(tenant)
    await session.query('CREATE TABLE t (id INT PRIMARY KEY, name TEXT)')
    await session.query("INSERT INTO t VALUES (1, 'Zoë 🚢')")
    expect(await ask(session, 'SELECT name FROM t')).toBe('Zoë 🚢')
    expect(new Set(await rows(session, 'SHOW DATABASES'))).toEqual(
      new Set([{ Database: 'claimed' }, { Database: 'information_schema' }]),
    )
  })

  test('claim repeated keeps the data, and sets login and password', async () => {
    const tenant = await bench.tenant('again')
    await (await bench.as(tenant)).query('CREATE TABLE kept (n INT)')
    await bench.admin.disableLogin('again')
    await bench.admin.claim({ ...tenant, password: 'another' }, LIMITS, {})
    await bench.admin.verify({ ...tenant, password: 'another' })
    expect(await rows(await bench.as({ ...tenant, password: 'another' }), 'SHOW TABLES')).toEqual([{ Tables_in_again: 'kept' }])
  })

  test.each([
    { step: 'after the database', left: 'CREATE DATABASE cut1', name: 'cut1' },
    { step: 'after the account', left: "CREATE DATABASE cut2; CREATE USER 'cut2'@'%' IDENTIFIED BY 'x'", name: 'cut2' },
    { step: 'with the account alone', left: "CREATE USER 'cut3'@'%' IDENTIFIED BY 'x'", name: 'cut3' },
  ])('claim completes what a crash left $step', async ({ left, name }) => {
    await (await bench.root()).query(left)
    const tenant = await bench.tenant(name)
    await bench.admin.verify(tenant)
    await (await bench.as(tenant)).query('CREATE TABLE t (n INT)')
  })

  test('harden gives an account of an older version the privilege that its grant lacks', async () => {
    const tenant = await bench.tenant('older')
    await (await bench.root()).query("REVOKE EVENT ON older.* FROM 'older'@'%'")
    const DENIED = 1044
    expect(await errno((await bench.as(tenant)).query('SHOW EVENTS'))).toBe(DENIED)
    await bench.admin.harden()
    expect(await rows(await bench.as(tenant), 'SHOW EVENTS')).toEqual([])
  })

  test('claim rejects names that belong to the server', async () => {
    for (const name of ['mysql', 'sys', 'root', 'mooring', 'with_underscore', 'Upper', 'making_x', ''])
      expect(await codeOf(bench.admin.claim({ name, password: 'x' }, LIMITS, {}))).toBe('engine_failed')
  })

  test('verify rejects a wrong password, a disabled login and a missing database', async () => {
    const tenant = await bench.tenant('verified')
    expect(await codeOf(bench.admin.verify({ ...tenant, password: 'wrong' }))).toBe('login_refused')
    await bench.admin.disableLogin('verified')
    expect(await codeOf(bench.admin.verify(tenant))).toBe('login_refused')
    await bench.admin.enableLogin('verified')
    await (await bench.as(tenant)).query('DROP DATABASE verified')
    expect(await codeOf(bench.admin.verify(tenant))).toBe('login_refused')
  })

  test('disableLogin ends every session and rejects logins until enableLogin', async () => {
    const tenant = await bench.tenant('disabled')
    const session = await bench.as(tenant)
    const ended = expect(session.query('SELECT SLEEP(100)')).rejects.toThrow()
    await bench.admin.disableLogin('disabled')
    expect(await bench.admin.find('disabled')).toEqual({ database: true, login: LoginState.disabled })
    await ended
    expect([3118, 4151]).toContain(await errno(bench.as(tenant)))
    await bench.admin.enableLogin('disabled')
    await bench.admin.verify(tenant)
  })

  test('reset empties the database and keeps the login and its password', async () => {
    const tenant = await bench.tenant('reset')
    const session = await bench.as(tenant)
    await session.query('CREATE TABLE t (n INT)')
    await bench.admin.reset('reset', {})
    await bench.admin.verify(tenant)
    await expect(session.query('SELECT 1')).rejects.toThrow()
    const anew = await bench.as(tenant)
    expect(await rows(anew, 'SHOW TABLES')).toEqual([])
    await anew.query('CREATE TABLE t (n INT)')
  })

  test('reset repeated after a crash in its middle succeeds', async () => {
    const tenant = await bench.tenant('halfway')
    await (await bench.as(tenant)).query('CREATE TABLE t (n INT)')
    await (
      await bench.root()
    ).query("ALTER USER 'halfway'@'%' REQUIRE SUBJECT 'blocked'; CREATE DATABASE making_halfway; DROP DATABASE halfway")
    expect(await bench.admin.find('halfway')).toMatchObject({ database: false })
    await bench.admin.reset('halfway', {})
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('halfway')).toEqual(WHOLE)
  })

  test('drop removes database and account, with sessions open, and repeats', async () => {
    const tenant = await bench.tenant('dropped')
    const session = await bench.as(tenant)
    await session.query('CREATE TABLE t (n INT)')
    await session.query('LOCK TABLES t WRITE')
    await bench.admin.drop('dropped')
    await bench.admin.drop('dropped')
    expect(await bench.admin.find('dropped')).toEqual(ABSENT)
    expect(await errno(bench.as(tenant))).toBe(1045)
  })

  test('catalog lists tenants with only a login or only a database, and marks as leftovers; tidy removes these', async () => {
    const root = await bench.root()
    await root.query("CREATE DATABASE alone1; CREATE USER 'alone2'@'%' IDENTIFIED BY 'x' ACCOUNT LOCK")
    await root.query('CREATE DATABASE marked1; CREATE TABLE marked1.t (n INT); CREATE DATABASE making_marked1')
    const { tenants, leftovers, spare } = await bench.admin.catalog()
    expect(tenants.get('alone1')).toEqual({ database: true, login: LoginState.absent })
    expect(tenants.get('alone2')).toEqual({ database: false, login: LoginState.disabled })
    expect(tenants.has('marked1') || tenants.has('mysql') || tenants.has('mooring')).toBe(false)
    expect({ leftovers, spare }).toEqual({ leftovers: ['making_marked1'], spare: 0 })
    while (await bench.admin.tidy(3));
    expect((await bench.admin.catalog()).leftovers).toEqual([])
    expect(await rows(root, "SHOW DATABASES LIKE '%marked1'")).toEqual([])
    for (const name of ['alone1', 'alone2']) await bench.admin.drop(name)
  })

  test('claims of many tenants at once succeed', async () => {
    const tenants = await Promise.all(Array.from({ length: 12 }, (_, index) => bench.tenant(`many${index}`)))
    await Promise.all(tenants.map((tenant) => bench.admin.verify(tenant)))
    await Promise.all(tenants.map(({ name }) => bench.admin.drop(name)))
  })

  test('sizes counts the tables of every engine, routines and tables in the shared tablespace', async () => {
    const tenant: Tenant = await bench.tenant('sized')
    const session = await bench.as(tenant)
    const size = async (which: 'all' | 'busy' = 'all') => (await bench.admin.sizes(which)).get('sized') ?? 0
    const fill = (table: string) =>
      session.query(`INSERT INTO ${table} SELECT REPEAT('x', 100000) FROM information_schema.COLLATIONS LIMIT 50`)
    const grows = async (least: number, work: () => Promise<unknown>) => {
      const before = await size()
      await work()
      await until(async () => (await size()) >= before + least)
    }
    await grows(4_000_000, async () => {
      await session.query('CREATE TABLE innodb (t LONGTEXT)')
      await fill('innodb')
    })
    await grows(4_000_000, async () => {
      await session.query('CREATE TABLE myisam (t LONGTEXT) ENGINE=MyISAM')
      await fill('myisam')
    })
    await grows(4_000_000, async () => {
      await session.query('CREATE TABLE memory (t CHAR(250)) ENGINE=MEMORY')
      await session.query("INSERT INTO memory SELECT 'x' FROM innodb a, innodb b, information_schema.COLLATIONS LIMIT 5000")
    })
    await grows(100_000, () =>
      session.query(`CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN LENGTH('${'x'.repeat(100_000)}')`),
    )
    if (motor !== 'mariadb-10.7.4') {
      await grows(4_000_000, async () => {
        await session.query('CREATE TABLE shared (t LONGTEXT) TABLESPACE=innodb_system')
        await fill('shared')
        // The size of a table without a file of its own is a statistic, which the server brings up to date every 10 s.
        await session.query('ANALYZE TABLE shared')
      })
    }
    expect(await size('busy')).toBeGreaterThan(8_000_000)
  })

  test('sizes counts the text of views, triggers and events, and keeps it while a lock hides the database', async () => {
    const session = await bench.as(await bench.tenant('wordy'))
    const size = async () => (await bench.admin.sizes('all')).get('wordy') ?? 0
    const text = 'x'.repeat(1_000_000)
    await session.query('CREATE TABLE t (n INT)')
    const before = await size()
    await session.query(`CREATE TRIGGER fires BEFORE INSERT ON t FOR EACH ROW SET @text = '${text}'`)
    // A count that a busy server does not finish in time keeps the last result.
    await expect.poll(size, LATER).toBeGreaterThan(before + 900_000)
    const withTrigger = await size()
    await session.query(`CREATE VIEW v AS SELECT '${text}' AS text FROM t`)
    await expect.poll(size, LATER).toBeGreaterThan(withTrigger + 2_700_000)
    const withView = await size()
    await session.query(`CREATE EVENT never ON SCHEDULE EVERY 1 DAY DO SET @text = '${text}'`)
    await expect.poll(size, LATER).toBeGreaterThan(withView + 900_000)
    await session.query('LOCK TABLES t WRITE')
    expect(await size()).toBeGreaterThan(before + 3_600_000)
  })

  test('sizes and measure open no view', async () => {
    const session = await bench.as(await bench.tenant('nested'))
    for (const statement of nestedViews(13)) await session.query(statement)
    await session.query('CREATE TABLE other (n INT) ENGINE=MyISAM')
    const root = await bench.root()
    // Only MariaDB counts the views that it opens.
    const opened = () => rows(root, `SHOW GLOBAL STATUS LIKE 'Opened_views'`)
    const before = await opened()
    const sizes = [await bench.admin.sizes('busy'), await bench.admin.sizes('all')].map((all) => all.get('nested'))
    const { sizeBytes } = (await bench.admin.measure('nested')) ?? {}
    expect(await opened()).toEqual(before)
    expect(before).toHaveLength(motor === 'mariadb-10.7.4' ? 1 : 0)
    // Each view counts, so that their number is bounded.
    expect(Math.min(...sizes.map(Number))).toBeGreaterThan((sizeBytes ?? Infinity) + 14 * 8_192)
  })

  test('sizes of busy databases omits databases without sessions', async () => {
    await bench.tenant('quiet')
    await until(async () => !(await bench.admin.sizes('busy')).has('quiet'))
    expect((await bench.admin.sizes('all')).has('quiet')).toBe(true)
  })

  test('a crash of the server loses nothing, and the connections are made anew', async () => {
    const tenant = await bench.tenant('survivor')
    await (await bench.as(tenant)).query('CREATE TABLE kept (n INT)')
    await bench.server.crash()
    await bench.admin.verify(tenant)
    expect(await bench.admin.find('survivor')).toEqual(WHOLE)
    expect(await rows(await bench.as(tenant), 'SHOW TABLES')).toEqual([{ Tables_in_survivor: 'kept' }])
  })

  test('there are no extensions and no transaction ids', async () => {
    expect(await bench.admin.extensions()).toEqual([])
    expect(await bench.admin.installExtensions('any', ['citext'])).toMatchObject({
      refused: [{ name: 'citext', reason: 'unavailable' }],
    })
    expect(await bench.admin.findChangedExtensions(new Map([['any', ['citext']]]))).toEqual([])
    expect(await bench.admin.guardTransactionIds()).toBe(0)
  })
})

const isRoot = process.getuid?.() === 0

describe.each(underTest(MOTORS))('a server of $motor', ({ motor }) => {
  // Under root the data gets another path, which may cover the real one.
  test.each(isRoot ? [tmpdir(), '/mnt'] : [tmpdir()])(
    'starts with its data below %s, and again after a crash',
    async (parent) => {
      await using server = await startMysql(motor, parent)
      await (await server.client()).query('CREATE DATABASE kept')
      await server.crash()
      expect(await rows(await server.client(), "SHOW DATABASES LIKE 'kept'")).toHaveLength(1)
    },
  )
})

test('ENGINES has both families', () => {
  expect([ENGINES.get('mysql'), ENGINES.get('mariadb')]).toEqual([mysql, mariadb])
})

test('uri quotes the password, and names the CA where TLS is required', () => {
  const at = { host: '::1', port: 3306, name: 'shop', password: 'a/b', caFile: undefined }
  expect(mysql.uri(at)).toBe('mysql://shop:a%2Fb@[::1]:3306/shop')
  expect(mariadb.uri({ ...at, host: 'db.example', caFile: '/tmp/ca.pem' })).toBe(
    'mysql://shop:a%2Fb@db.example:3306/shop?ssl-mode=VERIFY_IDENTITY&ssl-ca=%2Ftmp%2Fca.pem',
  )
})
