import { type Family, Motor, partsOf } from '../../../crds/motor.ts'
import type { Instance } from '../api/answers.ts'
import { query } from '../postgresql/sql.ts'
import { openMongodb, openMysql } from './family-client.ts'

/** What a tenant tries against the others of its server. */
export interface Attempts {
  /** Runs a statement (a command of MongoDB as JSON, after the database that it is sent to) as the tenant. */
  readonly run: (tenant: Instance, statement: string) => Promise<unknown>
  /** Statements that the server must deny to every tenant. */
  readonly denied: (victim: Instance) => readonly string[]
  /** Whether an error says that the tenant lacks the privilege. */
  readonly isDenial: (error: unknown) => boolean
  /** Statements whose results must not name another tenant. */
  readonly listings: readonly string[]
}

const postgresql: Attempts = {
  run: query,
  denied: ({ name, user }) => [
    ...['CREATE DATABASE another', `DROP DATABASE ${name}`, `ALTER DATABASE ${name} RENAME TO mine`, `SET ROLE ${user}`],
    ...[`ALTER ROLE ${user} PASSWORD 'x'`, 'SELECT rolpassword FROM pg_authid', `SELECT pg_database_size('${name}')`],
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'`,
  ],
  isDenial: (error) => error instanceof Error && 'code' in error && error.code === '42501',
  // The catalogs that all databases share show names of databases and logins (docs/isolation.md).
  listings: ['SELECT * FROM pg_class', 'SELECT query FROM pg_stat_activity'],
}

const MYSQL_DENIALS: readonly unknown[] = [1044, 1045, 1095, 1142, 1143, 1227, 1370, 1410, 1698]

const mysql: Attempts = {
  async run(tenant, statement) {
    const session = await openMysql(tenant)
    try {
      return (await session.query(statement))[0]
    } finally {
      await session.end()
    }
  },
  denied: ({ name, user }) => [
    ...[`USE ${name}`, `SELECT * FROM ${name}.items`, `INSERT INTO ${name}.items VALUES ('x')`, `DROP DATABASE ${name}`],
    ...['CREATE DATABASE another', `CREATE USER another IDENTIFIED BY 'x'`, `DROP USER ${user}`, 'SELECT * FROM mysql.user'],
    ...[`SET PASSWORD FOR ${user} = 'x'`, 'SET GLOBAL max_connections = 1', `CREATE VIEW v AS SELECT * FROM ${name}.items`],
    ...[`SELECT 1 INTO OUTFILE '/tmp/x'`, `SELECT LOAD_FILE('/etc/passwd') FROM mysql.db`, 'SHUTDOWN'],
    ...[`CREATE EVENT ${name}.e ON SCHEDULE EVERY 1 SECOND DO SELECT 1`, `GRANT ALL ON ${name}.* TO ${user}`],
    `CREATE DEFINER = ${user} PROCEDURE p() SELECT 1`,
  ],
  isDenial: (error) => error instanceof Error && 'errno' in error && MYSQL_DENIALS.includes(error.errno),
  listings: [
    ...['SHOW DATABASES', 'SHOW FULL PROCESSLIST', 'SHOW GRANTS', 'SELECT * FROM information_schema.TABLES'],
    ...['SELECT * FROM information_schema.USER_PRIVILEGES', 'SELECT * FROM information_schema.SCHEMA_PRIVILEGES'],
  ],
}

const command = (database: string, document: object): string => JSON.stringify([database, document])

const mongodb: Attempts = {
  async run(tenant, statement) {
    await using client = await openMongodb(tenant)
    const [database, document] = JSON.parse(statement) as [string, Record<string, unknown>]
    return await client.db(database === '' ? tenant.name : database).command(document)
  },
  denied: ({ name, user }) => [
    ...[
      command(name, { find: 'items' }),
      command(name, { insert: 'items', documents: [{}] }),
      command(name, { dropDatabase: 1 }),
    ],
    ...[command(name, { listCollections: 1 }), command('another', { create: 'c' }), command('local', { find: 'oplog.rs' })],
    ...[command('admin', { find: 'system.users' }), command('', { createUser: 'minion', pwd: 'x', roles: [] })],
    ...[command(name, { updateUser: user, pwd: 'x' }), command('admin', { currentOp: 1 }), command('admin', { shutdown: 1 })],
    ...[
      command('admin', { killAllSessions: [] }),
      command('admin', { setParameter: 1, logLevel: 5 }),
      command('', { profile: 2 }),
    ],
    command(name, { aggregate: 1, pipeline: [{ $changeStream: {} }], cursor: {} }),
    command('admin', { aggregate: 1, pipeline: [{ $changeStream: { allChangesForCluster: true } }], cursor: {} }),
    command('', { aggregate: 'items', pipeline: [{ $out: { db: name, coll: 'items' } }], cursor: {} }),
    command('', { aggregate: 'items', pipeline: [{ $merge: { into: { db: name, coll: 'items' } } }], cursor: {} }),
  ],
  isDenial: (error) => error instanceof Error && 'code' in error && error.code === 13,
  listings: [
    ...[command('admin', { listDatabases: 1 }), command('', { connectionStatus: 1, showPrivileges: true })],
    command('admin', { aggregate: 1, pipeline: [{ $currentOp: { allUsers: false } }], cursor: {} }),
  ],
}

const ATTEMPTS: Readonly<Record<Family, Attempts>> = { postgresql, mysql, mariadb: mysql, mongodb }

/** Returns the attempts of a tenant of a motor. */
export const attemptsOf = (motor: string): Attempts => ATTEMPTS[partsOf(Motor.parse(motor)).family]
