import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/mysql2'
import { migrate } from 'drizzle-orm/mysql2/migrator'
import knex from 'knex'
import mysql from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { partsOf } from '../../../crds/motor.ts'
import type { Instance } from '../../support/api/answers.ts'
import type { Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { mysqlTls, openMysql } from '../../support/families/family-client.ts'
import { contentOf } from '../../support/families/family-content.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import {
  mariadbPrograms,
  type MysqlPrograms,
  mysqlPrograms,
  pythonWithPymysql,
  runProgram,
} from '../../support/families/programs.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const scratch = () => mkdtempDisposable(join(tmpdir(), 'mooring-mysql-'))
/** Options of mysql2 for an application, as docs/api.md has them: the uri as it is, and the CA where TLS is required. */
const connectionOf = (instance: Instance) => ({ uri: instance.uri, ...mysqlTls(instance) })

/** Returns the documented expression that removes definers, which are logins of another instance, from a dump. */
async function definerExpression(): Promise<string> {
  const document = await readFile(new URL('../../../docs/api.md', import.meta.url), 'utf8')
  return /`sed -E '([^']+)'`/.exec(document)?.[1] ?? ''
}

async function rows(instance: Instance, sql: string): Promise<readonly mysql.RowDataPacket[]> {
  const session = await openMysql(instance)
  try {
    return (await session.query<mysql.RowDataPacket[]>(sql))[0]
  } finally {
    await session.end()
  }
}

interface Suite {
  readonly suite: string
  readonly programs: () => Promise<MysqlPrograms>
}
const OF_MARIADB: Suite = { suite: 'MariaDB', programs: mariadbPrograms }
const OF_MYSQL: Suite = { suite: 'MySQL', programs: mysqlPrograms }

const MOTORS = motorsUnderTest().filter((motor) => ['mysql', 'mariadb'].includes(partsOf(motor).family))
const PROGRAMS = MOTORS.flatMap((motor) => [OF_MARIADB, OF_MYSQL].map((each) => ({ motor, ...each })))

describe.each(PROGRAMS)('the stock programs of $suite on $motor', ({ motor, programs }) => {
  test('log in with the parts of the response', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const client = await (await programs()).client(instance, directory.path)
    const statement = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1), DATABASE()"
    const output = await runProgram([...client, '--batch', '--skip-column-names', '-e', statement, instance.name])
    expect(output).toBe(`${instance.user}\t${instance.name}\n`)
  })

  test('dump one instance, and load it into another', async () => {
    await using directory = await scratch()
    const [from, to] = [await acme.instance({ motor }), await acme.instance({ motor })]
    const { furnish, read } = contentOf(motor)
    await furnish(from)
    const { client, dump } = await programs()
    const text = await runProgram([
      ...(await dump(from, directory.path)),
      ...['--single-transaction', '--no-tablespaces', '--routines', '--events', '--triggers', from.name],
    ])
    const portable = await runProgram(['sed', '-E', await definerExpression()], text)
    await runProgram([...(await client(to, directory.path)), to.name], portable)
    expect(await read(to)).toEqual(await read(from))
  })
})

/** Prints the name of the login; its arguments are host, port, login, password, database and perhaps the file of the CA. */
const PYTHON_CLIENT = `import pymysql, sys
host, port, user, password, database, *ca = sys.argv[1:]
tls = {'ssl': {'ca': ca[0]}} if ca else {}
client = pymysql.connect(host=host, port=int(port), user=user, password=password, database=database, **tls)
with client.cursor() as cursor:
    cursor.execute('SELECT USER()')
    print(cursor.fetchone()[0].split('@')[0])
`

describe.each(MOTORS)('an application on %s runs', (motor) => {
  test('PyMySQL without the package that knows RSA', async () => {
    await using directory = await scratch()
    const { host, port, user, password, name, tls } = await acme.instance({ motor })
    const ca = join(directory.path, 'ca.pem')
    await writeFile(ca, tls.ca ?? '')
    const args = [host, `${port}`, user, password, name, ...(tls.required ? [ca] : [])]
    expect(await runProgram([...(await pythonWithPymysql()), PYTHON_CLIENT, ...args])).toBe(`${user}\n`)
  })

  test('migrations and rollbacks of knex', async () => {
    const instance = await acme.instance({ motor })
    const migrations = [
      {
        name: '1_users',
        up: (db: knex.Knex) => db.schema.createTable('users', (table) => table.increments().primary()),
        down: (db: knex.Knex) => db.schema.dropTable('users'),
      },
      {
        name: '2_names',
        up: (db: knex.Knex) => db.schema.alterTable('users', (table) => table.string('name').notNullable().unique()),
        down: (db: knex.Knex) => db.schema.alterTable('users', (table) => table.dropColumn('name')),
      },
    ]
    const migrationSource: knex.Knex.MigrationSource<(typeof migrations)[number]> = {
      getMigrations: async () => migrations,
      getMigrationName: ({ name }) => name,
      getMigration: async ({ up, down }) => ({ up, down }),
    }
    const db = knex({ client: 'mysql2', connection: connectionOf(instance), migrations: { migrationSource } })
    try {
      await db.migrate.latest()
      await db.transaction((transaction) => transaction('users').insert({ name: 'ada' }))
      expect(await db('users').select('name')).toEqual([{ name: 'ada' }])
      await db.migrate.rollback(undefined, true)
      expect(await db.schema.hasTable('users')).toBe(false)
    } finally {
      await db.destroy()
    }
  })

  test('migrations of drizzle', async () => {
    await using directory = await scratch()
    const instance = await acme.instance({ motor })
    const entries = ['0000_users', '0001_names'].map((tag, idx) => ({
      ...{ idx, version: '5', when: 1_700_000_000_000 + idx, tag, breakpoints: true },
    }))
    await mkdir(join(directory.path, 'meta'))
    const file = (name: string, text: string) => writeFile(join(directory.path, name), text)
    await file('meta/_journal.json', JSON.stringify({ version: '7', dialect: 'mysql', entries }))
    await file('0000_users.sql', 'CREATE TABLE `users` (`id` int AUTO_INCREMENT PRIMARY KEY);')
    await file(
      '0001_names.sql',
      'ALTER TABLE `users` ADD `name` varchar(40);--> statement-breakpoint\nCREATE INDEX `by_name` ON `users` (`name`);',
    )
    const client = await openMysql(instance)
    try {
      for (let time = 0; time < 2; time++) await migrate(drizzle({ client }), { migrationsFolder: directory.path })
    } finally {
      await client.end()
    }
    expect(await rows(instance, 'SELECT COUNT(*) AS applied FROM __drizzle_migrations')).toEqual([{ applied: 2 }])
  })

  test('a pool of ten busy connections', async () => {
    const pool = mysql.createPool({ ...connectionOf(await acme.instance({ motor })), connectionLimit: 10 })
    try {
      const ids = async () =>
        (await pool.query<mysql.RowDataPacket[]>('SELECT CONNECTION_ID() AS id, SLEEP(0.1)'))[0][0]?.id as number
      expect(new Set(await Promise.all(Array.from({ length: 10 }, ids))).size).toBe(10)
      await Promise.all(Array.from({ length: 100 }, () => pool.query('SELECT 1')))
    } finally {
      await pool.end()
    }
  })

  test('a schema like that of WordPress, with emoji', async () => {
    const instance = await acme.instance({ motor })
    const session = await openMysql(instance)
    const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci'
    const options =
      'INSERT INTO `wp_1_options` (option_name, option_value) VALUES (?, ?) ON DUPLICATE KEY UPDATE option_value = VALUES(option_value)'
    try {
      await session.query('SET NAMES utf8mb4')
      await session.query("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")
      await session.query(`CREATE TABLE \`wp_1_options\` (
        option_id bigint(20) unsigned NOT NULL auto_increment, option_name varchar(191) NOT NULL default '',
        option_value longtext NOT NULL, autoload varchar(20) NOT NULL default 'yes',
        PRIMARY KEY (option_id), UNIQUE KEY option_name (option_name), KEY autoload (autoload)) ${table}`)
      await session.query(`CREATE TABLE \`wp_1_posts\` (
        ID bigint(20) unsigned NOT NULL auto_increment, post_date datetime NOT NULL default '0000-00-00 00:00:00',
        post_title text NOT NULL, post_name varchar(200) NOT NULL default '', post_status varchar(20) NOT NULL default 'publish',
        PRIMARY KEY (ID), KEY post_name (post_name(191)), FULLTEXT KEY title (post_title)) ${table}`)
      await session.query(options, ['blogname', 'Schiff 🚢'])
      const large = '🚢'.repeat(250_000)
      await session.query(options, ['large', large])
      await session.query(options, ['BLOGNAME', 'Hafen ⚓'])
      await session.query("INSERT INTO `wp_1_posts` (post_title) VALUES ('Größe 👩‍🚀')")
      const [found] = await session.query("SELECT option_value AS v FROM `wp_1_options` WHERE option_name = 'blogname'")
      expect(found).toEqual([{ v: 'Hafen ⚓' }])
      const [stored] = await session.query<mysql.RowDataPacket[]>(
        "SELECT option_value AS v FROM `wp_1_options` WHERE option_name = 'large'",
      )
      expect(stored[0]?.v === large).toBe(true)
      // The collation compares without case and accents.
      const [posts] = await session.query(
        "SELECT post_title AS t FROM `wp_1_posts` WHERE post_title LIKE 'grosse%' OR post_title LIKE 'GRÖSSE%' OR post_title LIKE 'größe%'",
      )
      expect(posts).toEqual([{ t: 'Größe 👩‍🚀' }])
      const [tables] = await session.query<mysql.RowDataPacket[]>(String.raw`SHOW TABLES LIKE 'wp\_1\_%'`)
      expect(tables).toHaveLength(2)
    } finally {
      await session.end()
    }
  })
})
