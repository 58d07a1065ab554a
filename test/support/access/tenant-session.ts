import { MongoClient } from 'mongodb'
import mysql from 'mysql2/promise'
import pg from 'pg'
import type { Family } from '../../../crds/motor.ts'
import type { Tenant } from '../../../operator/engines/engine.ts'

/** Session of a tenant, with one connection. */
export interface TenantSession {
  /** Runs a statement of the family. Rejects when the session has ended. */
  run(statement: string): Promise<unknown>
  end(): Promise<void>
}

interface Login extends Tenant {
  readonly port: number
  readonly tls: boolean
}

/** Statement that any session may run. */
export const HARMLESS: Readonly<Record<Family, string>> = {
  ...{ postgresql: 'SELECT 1', mysql: 'SELECT 1', mariadb: 'SELECT 1', mongodb: '{"count":"items"}' },
}

async function openPostgresql({ port, name, password, tls }: Login): Promise<TenantSession> {
  const ssl = tls && { rejectUnauthorized: false }
  const client = new pg.Client({ host: '127.0.0.1', port, user: name, password, database: name, ssl })
  client.on('error', () => undefined)
  await client.connect()
  return { run: (statement) => client.query(statement), end: () => client.end() }
}

async function openMysql({ port, name, password, tls }: Login): Promise<TenantSession> {
  const ssl = tls && { ssl: { rejectUnauthorized: false } }
  const client = await mysql.createConnection({ host: '127.0.0.1', port, user: name, password, database: name, ...ssl })
  client.on('error', () => undefined)
  return { run: (statement) => client.query(statement), end: () => client.end() }
}

async function openMongodb({ port, name, password }: Login): Promise<TenantSession> {
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/`, {
    ...{ auth: { username: name, password }, authSource: name, directConnection: true, maxPoolSize: 1 },
    ...{ serverSelectionTimeoutMS: 5_000, retryReads: false, retryWrites: false },
  })
  try {
    await client.connect()
  } catch (error) {
    await client.close()
    throw error
  }
  return {
    run: (statement) => client.db(name).command(JSON.parse(statement) as Record<string, unknown>),
    end: () => client.close(),
  }
}

const OPEN: Readonly<Record<Family, (login: Login) => Promise<TenantSession>>> = {
  ...{ postgresql: openPostgresql, mysql: openMysql, mariadb: openMysql, mongodb: openMongodb },
}

/** Logs in to the server behind a port of this machine. */
export const openTenantSession = (family: Family, login: Login): Promise<TenantSession> => OPEN[family](login)
