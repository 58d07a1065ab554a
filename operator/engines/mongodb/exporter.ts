import { randomUUID } from 'node:crypto'
import { UUID } from 'mongodb'
import type { EngineAdmin } from '../engine.ts'
import { EXPORTER_SOURCE, EXPORTER_USER } from '../exporter.ts'
import type { Scram } from '../scram.ts'
import type { Connection } from './connection.ts'
import { rolesOf, usersOf, writeUser } from './users.ts'

interface Deps {
  readonly connection: Connection
  readonly scram: Scram
}

const DATABASE = 'admin'
const ID = `${DATABASE}.${EXPORTER_USER}`
const STATISTICS = ['collStats', 'dbStats']
/**
 * Privileges to read statistics of the server and of each database, and no documents. The built-in role clusterMonitor would read the databases
 * local and config, too, whose oplog has every document that is written. A database `''` stands for all others.
 */
const PRIVILEGES = [
  {
    resource: { cluster: true },
    actions: ['connPoolStats', 'getCmdLineOpts', 'listDatabases', 'replSetGetStatus', 'serverStatus'],
  },
  ...['', 'local', 'config'].map((db) => ({ resource: { db, collection: '' }, actions: STATISTICS })),
]

/** Creates the function that creates, changes and drops the exporter's user. */
export function createExporterLogin({ connection, scram }: Deps): EngineAdmin['monitor'] {
  return async function monitor(password) {
    const [users, roles] = [usersOf(connection), rolesOf(connection)]
    if (password === undefined) {
      await users.deleteOne({ _id: ID })
      await roles.deleteOne({ _id: ID })
      return
    }
    const role = { role: EXPORTER_USER, db: DATABASE }
    await roles.replaceOne({ _id: ID }, { ...role, privileges: PRIVILEGES, roles: [] }, { upsert: true })
    const found = await users.findOne({ _id: ID })
    const stored = found?.credentials['SCRAM-SHA-256']
    if (stored && (await scram.proves(password, stored)) && found.roles.some(({ role: name }) => name === EXPORTER_USER)) return
    await writeUser(connection, {
      _id: ID,
      userId: new UUID(randomUUID()),
      user: EXPORTER_USER,
      db: DATABASE,
      roles: [role],
      credentials: { 'SCRAM-SHA-256': await scram.credentials(password) },
      authenticationRestrictions: [{ clientSource: [EXPORTER_SOURCE] }],
    })
  }
}
