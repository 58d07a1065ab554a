import type { Connection } from 'mysql2/promise'
import { afterEach, beforeAll } from 'vitest'
import type { Tenant } from '../../../operator/engines/engine.ts'
import { errno, type MysqlBench, mysqlBench, rows, until } from './bench.ts'
import type { MysqlMotor } from './server.ts'

/**
 * Errors by which a server denies a statement: access to a database, table, column, routine or account, a privilege, an option of the
 * server, a foreign session, a definer without the right to name it.
 */
export const DENIED: readonly unknown[] = [1044, 1045, 1142, 1143, 1227, 1290, 1370, 1095, 1094, 1410, 3530, 1698]

/** Two tenants of one server: `mallory` attacks, `victim` has a table and a session. */
export interface Neighbours {
  readonly bench: MysqlBench
  readonly mallory: Tenant
  readonly victim: Tenant
  readonly asMallory: () => Promise<Connection>
  readonly asVictim: () => Promise<Connection>
  /** Runs a statement as `mallory` in a session of its own. Returns the server's error; undefined when it succeeds. */
  readonly attempt: (sql: string) => Promise<number | undefined>
}

/** For one `describe`; the members may be used from within tests only. Sessions end with their test. */
export function neighbours(motor: MysqlMotor): Neighbours {
  const bench = mysqlBench(motor)
  let sessions: Connection[] = []
  const mallory = { name: 'mallory', password: 'password-of-mallory' }
  const victim = { name: 'victim', password: 'password-of-victim' }
  beforeAll(async () => {
    await bench.tenant('mallory')
    await bench.tenant('victim')
    const session = await bench.as(victim)
    await session.query('CREATE TABLE secret AS SELECT 1 AS n')
    await session.query('CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1')
    await session.end()
    const own = await bench.as(mallory)
    await own.query('CREATE TABLE own AS SELECT 1 AS n')
    await own.end()
  })
  afterEach(async () => {
    for (const session of sessions) session.destroy()
    sessions = []
    const root = await bench.root()
    const left = "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER IN ('mallory', 'victim')"
    await until(async () => (await rows(root, left)).length === 0)
    await root.end()
  })

  async function open(tenant: Tenant): Promise<Connection> {
    const session = await bench.as(tenant)
    sessions.push(session)
    return session
  }

  return {
    bench,
    mallory,
    victim,
    asMallory: () => open(mallory),
    asVictim: () => open(victim),
    attempt: async (sql) => errno((await open(mallory)).query(sql)),
  }
}
