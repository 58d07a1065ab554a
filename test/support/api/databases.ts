import { expect, vi } from 'vitest'
import { type Backup, type Call, type CallOptions, codeOf, type Database, type Instance } from './answers.ts'

/** Creating a server may have to wait for its image. */
const PATIENCE = { timeout: 240_000, interval: 250 }

/** Calls the dedicated listener as another caller does the shared one. */
export const dedicated =
  (call: Call): Call =>
  (method, path, options) =>
    call(method, path, { on: 'dedicated', ...options })

export const databasePath = ({ id }: Pick<Database, 'id'>): string => `/v1/databases/${id}`

/** Creates a database. @throws Error with code and message of an error response */
export async function createDatabase(call: Call, body: object, options: CallOptions = {}): Promise<Database> {
  const answer = await dedicated(call)('POST', '/v1/databases', { ...options, body })
  if (answer.status !== 201) throw new Error(`${codeOf(answer)}: ${answer.body.msg}`)
  return answer.body.data.database
}

/** Waits until a database runs, and returns it with its connection. @throws Error with its status when that takes too long, or it fails */
export async function untilRunning(call: Call, database: Pick<Database, 'id'>): Promise<Database> {
  return vi.waitFor(async () => {
    const now = (await dedicated(call)('GET', databasePath(database))).body.data.database
    const { status, statusReason } = now
    if (status !== 'running') throw new Error(`the database is ${status}: ${String(statusReason)}`)
    return now
  }, PATIENCE)
}

export async function backupsOf(call: Call, database: Pick<Database, 'id'>): Promise<readonly Backup[]> {
  return (await dedicated(call)('GET', `${databasePath(database)}/backups`)).body.data.backups
}

/** Waits until a database has a backup and a restore window. */
export async function untilBackedUp(call: Call, database: Pick<Database, 'id'>): Promise<void> {
  await vi.waitFor(async () => {
    const backups = await backupsOf(call, database)
    if (!backups.some(({ status }) => status === 'succeeded')) throw new Error(`the backups are ${JSON.stringify(backups)}`)
  }, PATIENCE)
  await untilRestorable(call, database, 0)
}

/** Waits until a moment of a database, in ms, can be restored. */
export async function untilRestorable(call: Call, database: Pick<Database, 'id'>, moment: number): Promise<void> {
  await vi.waitFor(async () => {
    const { restoreWindow } = (await dedicated(call)('GET', databasePath(database))).body.data.database
    if (!restoreWindow || Date.parse(restoreWindow.latest) < moment) {
      throw new Error(`the restore window is ${JSON.stringify(restoreWindow)}`)
    }
  }, PATIENCE)
}

/** Waits until no response has the database any more. */
export async function untilGone(call: Call, database: Pick<Database, 'id'>): Promise<void> {
  const get = () => dedicated(call)('GET', databasePath(database))
  await vi.waitFor(async () => expect(codeOf(await get())).toBe('404 not_found'), PATIENCE)
}

/** Deletes all databases of an organization that the caller may list, and waits until they are gone. */
export async function removeDatabases(call: Call, organization: string): Promise<void> {
  const answer = await dedicated(call)('GET', `/v1/databases?limit=200&organization=${organization}`)
  const { databases } = answer.body.data
  await Promise.all(databases.map((database) => dedicated(call)('DELETE', databasePath(database))))
  await Promise.all(databases.map((database) => untilGone(call, database)))
}

/** Parameter of each engine's uri that demands TLS. */
const DEMANDS_TLS = /[?&](sslmode|ssl-mode|tls)=/

/** Returns the connection of a database in the form of an instance, for clients of the test suite. @throws Error without a connection */
export function asInstance({ id, name, region, createdAt, engine, engineVersion, connection, ...rest }: Database): Instance {
  if (!connection) throw new Error(`the response has no connection of the database ${name}`)
  const { host, port, user, password, database, uri, ca } = connection
  return {
    ...{ id, name: database, user, password, isEnabled: true, identifier: name, host, port, region, createdAt },
    ...{ motor: engine, engineVersion: engineVersion ?? '', expiresAt: null, uri },
    ...{ tls: { required: DEMANDS_TLS.test(uri), ca }, statusReason: rest.statusReason, statusCode: null },
  }
}
