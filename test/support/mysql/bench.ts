import type { Connection, RowDataPacket } from 'mysql2/promise'
import { beforeAll } from 'vitest'
import { partsOf } from '../../../crds/motor.ts'
import type { EngineAdmin, Tenant } from '../../../operator/engines/engine.ts'
import type { MysqlFamily } from '../../../operator/engines/mysql/catalog.ts'
import { mysqlAdmin } from '../../../operator/engines/mysql/mysql.ts'
import { type MysqlMotor, startMysql, type ThrowAwayMysql } from './server.ts'

export const LIMITS = { connections: 12 }

/** Hardened server and its admin, for one `describe`. Use its members within tests only. */
export interface MysqlBench {
  readonly server: ThrowAwayMysql
  readonly admin: EngineAdmin
  /** Claims a new tenant with this name. */
  tenant(name: string): Promise<Tenant>
  /** Opens a session of a tenant. */
  as(tenant: Tenant, database?: string): Promise<Connection>
  /** Opens a session of the administrator. */
  root(): Promise<Connection>
  /** Starts a statement that takes long, by default a sleep, and waits until the server runs it. */
  busy(client: Connection, sql?: string): Promise<void>
}

export const familyOf = (motor: MysqlMotor): MysqlFamily => (partsOf(motor).family === 'mariadb' ? 'mariadb' : 'mysql')

export function mysqlBench(motor: MysqlMotor): MysqlBench {
  let running: { server: ThrowAwayMysql; admin: EngineAdmin } | undefined

  beforeAll(async () => {
    const server = await startMysql(motor)
    const admin = mysqlAdmin(server.target, familyOf(motor))
    await admin.harden()
    running = { server, admin }
    return async () => {
      await admin[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    }
  })

  const now = (): { server: ThrowAwayMysql; admin: EngineAdmin } => {
    if (!running) throw new Error('the server is started before the first test')
    return running
  }
  return {
    get server() {
      return now().server
    },
    get admin() {
      return now().admin
    },
    async tenant(name) {
      const tenant = { name, password: `password-of-${name}` }
      await now().admin.claim(tenant, LIMITS, {})
      return tenant
    },
    as: (tenant, database = tenant.name) => now().server.client({ user: tenant.name, password: tenant.password, database }),
    root: () => now().server.client({ multipleStatements: true }),
    async busy(client, sql = 'SELECT SLEEP(100)') {
      // It ends with an error, or with the result of an interrupted sleep.
      client.query(sql).catch(() => undefined)
      const root = await now().server.client()
      const isRunning = `SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ${client.threadId} AND INFO IS NOT NULL`
      await until(async () => (await rows(root, isRunning)).length > 0)
      await root.end()
    },
  }
}

/** Rows of a statement. */
export async function rows(client: Connection, sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const [found] = await client.query<RowDataPacket[]>(sql)
  return found.map((row) => ({ ...row }))
}

/** First column of the first row. */
export async function ask(client: Connection, sql: string): Promise<unknown> {
  return Object.values((await rows(client, sql))[0] ?? {})[0]
}

/** Number of the server's error that `work` ends with; undefined where there is none. */
export async function errno(work: Promise<unknown>): Promise<number | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    if (error instanceof Error && 'errno' in error && typeof error.errno === 'number') return error.errno
    throw error
  }
}

/** Code of the engine's error that `work` ends with; undefined where there is none. */
export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
}

/** Waits until another process has made a condition true. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}
