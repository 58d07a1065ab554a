import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { type Family, Motor, partsOf } from '../../../crds/motor.ts'
import type { Instance } from '../api/answers.ts'
import { login } from '../postgresql/sql.ts'
import { openMongodb, mysqlTls, openMysql } from './family-client.ts'
import { usableUri } from './usable-uri.ts'

/** Open session of a tenant. */
export interface FamilySession extends AsyncDisposable {
  /** Runs a command that requires a login. @throws once the server has ended the session or logged it out */
  ping(): Promise<unknown>
  /** Returns the version that the server reports, without words of a distribution. */
  version(): Promise<string>
}

interface Opener {
  open(instance: Instance): Promise<FamilySession>
  /** Opens a session by the uri of the response, as an application does. `directory`: place of the CA file. */
  openUri(instance: Instance, directory: string): Promise<FamilySession>
}

const firstWord = (text: unknown): string => String(text).split(/[- ]/)[0] ?? ''

function postgresqlSession(client: pg.Client): FamilySession {
  return {
    ping: () => client.query('SELECT 1'),
    version: async () =>
      firstWord((await client.query<{ server_version: string }>('SHOW server_version')).rows[0]?.server_version),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

function mysqlSession(client: mysql.Connection): FamilySession {
  client.on('error', () => undefined)
  return {
    ping: () => client.query('SELECT 1'),
    async version() {
      const [rows] = await client.query<mysql.RowDataPacket[]>('SELECT VERSION() AS version')
      return firstWord(rows[0]?.version)
    },
    // A session that the server has ended cannot say goodbye.
    [Symbol.asyncDispose]: async () => client.destroy(),
  }
}

function mongodbSession(client: MongoClient, name: string): FamilySession {
  return {
    ping: () => client.db(name).listCollections().toArray(),
    version: async () => firstWord((await client.db(name).command({ buildInfo: 1 })).version),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

const ofMysql: Opener = {
  open: async (instance) => mysqlSession(await openMysql(instance)),
  async openUri({ uri, ...rest }) {
    // mysql2 takes the CA as an option alone.
    return mysqlSession(await mysql.createConnection({ uri, ...mysqlTls(rest) }))
  },
}

const OPENERS: Readonly<Record<Family, Opener>> = {
  postgresql: {
    open: async (instance) => postgresqlSession(await login(instance)),
    async openUri(instance, directory) {
      const client = new pg.Client({ connectionString: await usableUri(instance, directory) })
      client.on('error', () => undefined)
      await client.connect()
      return postgresqlSession(client)
    },
  },
  mysql: ofMysql,
  mariadb: ofMysql,
  mongodb: {
    open: async (instance) => mongodbSession(await openMongodb(instance), instance.name),
    async openUri(instance, directory) {
      const client = new MongoClient(await usableUri(instance, directory))
      return mongodbSession(await client.connect(), instance.name)
    },
  },
}

const openerOf = ({ motor }: Instance): Opener => OPENERS[partsOf(Motor.parse(motor)).family]

/** Opens a session with the credentials in a response. The caller disposes of it. */
export const openSession = (instance: Instance): Promise<FamilySession> => openerOf(instance).open(instance)

/** Returns the version that the server reports to a session opened by the uri of the response. */
export async function versionByUri(instance: Instance): Promise<string> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-uri-'))
  await using session = await openerOf(instance).openUri(instance, directory.path)
  // The session is disposed of after this.
  return await session.version()
}
