import type { Binary } from 'mongodb'
import { MooringError } from '../../../shared/errors.ts'
import { type Catalog, EngineCode, LoginState, type TenantState } from '../engine.ts'
import type { Connection, Session } from './connection.ts'
import { surveyOperations } from './survey.ts'
import { discardedBy } from './discarded-databases.ts'
import { loginOf, readUser, type RoleDocument, rolesOf, type UserDocument, usersOf } from './users.ts'

/** Databases of the server itself. */
const OWN: ReadonlySet<string> = new Set(['admin', 'config', 'local'])

/** Whether a database or login of this name can belong to a tenant. */
export function isTenantName(name: string): boolean {
  return /^[a-z][a-z0-9]{0,21}$/.test(name) && !OWN.has(name)
}

/**
 * Rejects the names of the server's own databases.
 * @throws MooringError `engine_failed` when a tenant cannot have the name
 */
export function assertTenantName(name: string): void {
  if (!isTenantName(name)) throw new MooringError(EngineCode.failed, `"${name}" is not the name of a tenant`)
}

/** Observed users, roles and databases of a server. */
interface Entries {
  readonly users: readonly Pick<UserDocument, 'db' | 'customData'>[]
  readonly roles: readonly Pick<RoleDocument, 'db' | 'role'>[]
  readonly databases: readonly string[]
}

/**
 * Returns the tenants of a server. MongoDB does not list a database without collections, so each tenant with a login counts as having one.
 * There are no spares, since claims are fast without them. A discarded database is a leftover; an incomplete one has the name of its tenant.
 * Pure.
 */
export function catalogOf({ users, roles, databases }: Entries): Catalog {
  const logins = new Map(users.map((user) => [user.db, loginOf(user)]))
  const discarded = new Set(roles.flatMap((role) => discardedBy(role)?.name ?? []))
  const complete = [...roles.map(({ db }) => db), ...databases].filter((name) => !discarded.has(name))
  const names = new Set([...logins.keys(), ...complete].filter(isTenantName))
  return {
    tenants: new Map(
      [...names].map((name): [string, TenantState] => [
        name,
        { database: !discarded.has(name), login: logins.get(name) ?? LoginState.absent },
      ]),
    ),
    spare: 0,
    leftovers: [...discarded],
  }
}

/** Reads all tenants of a server. */
export async function readCatalog(session: Session): Promise<Catalog> {
  const [users, roles, databases] = await Promise.all([
    usersOf(session).find().project<Pick<UserDocument, 'db' | 'customData'>>({ db: 1, customData: 1 }).toArray(),
    rolesOf(session).find().project<Pick<RoleDocument, 'db' | 'role'>>({ db: 1, role: 1 }).toArray(),
    listDatabases(session),
  ])
  return catalogOf({ users, roles, databases })
}

/** Returns the names of the databases that have a collection. */
export async function listDatabases(session: Session): Promise<readonly string[]> {
  const { databases } = await session.db('admin').admin().listDatabases({ nameOnly: true })
  return databases.map(({ name }) => name)
}

/** Whether a database has a collection or view. */
export async function hasCollections(session: Session, name: string): Promise<boolean> {
  await using cursor = session.db(name).listCollections({}, { nameOnly: true, batchSize: 1 })
  return await cursor.hasNext()
}

/** Database and login of one name. */
export interface Found extends TenantState {
  /** Whether a mark shows that the database is discarded; it then counts as absent until it is removed. */
  readonly isDiscarded: boolean
}

/** Reads the state of one tenant. */
export async function readTenant(session: Session, name: string): Promise<Found> {
  const [user, roles, filled] = await Promise.all([
    readUser(session, name),
    rolesOf(session).find({ db: name }).toArray(),
    hasCollections(session, name),
  ])
  const isDiscarded = roles.some((role) => discardedBy(role) !== undefined)
  return { database: !isDiscarded && (user !== undefined || roles.length > 0 || filled), login: loginOf(user), isDiscarded }
}

/**
 * Bytes that each collection and index counts in addition to its size: WiredTiger keeps a file and some memory for each, even for an empty
 * one.
 */
const FILE_BYTES = 65_536

/**
 * Reads bytes on disk by tenant, including images of changed documents. `busy`: only databases of connected tenants, since others do not
 * grow.
 */
export async function readSizes({ watch }: Connection, which: 'all' | 'busy'): Promise<ReadonlyMap<string, number>> {
  const databases = (await listDatabases(watch)).filter(isTenantName)
  const connected = which === 'all' ? new Set(databases) : await connectedTenants(watch)
  const images = await readImages(watch)
  const sizes = new Map<string, number>()
  for (const name of databases.filter((name) => connected.has(name))) {
    sizes.set(name, (await sizeOf(watch, name)) + (images.get(name) ?? 0))
  }
  return sizes
}

/** Returns the bytes of the images of changed documents by database (MongoDB 6.0, "changeStreamPreAndPostImages"). */
async function readImages(session: Session): Promise<ReadonlyMap<string, number>> {
  const found = await session
    .db('config')
    .collection('system.preimages')
    .aggregate<{ _id: Binary; bytes: number }>([{ $group: { _id: '$_id.nsUUID', bytes: { $sum: { $bsonSize: '$$ROOT' } } } }])
    .toArray()
  const sizes = new Map<string, number>()
  if (found.length === 0) return sizes
  const bytesOf = new Map(found.map(({ _id, bytes }) => [_id.toString('hex'), bytes]))
  // The server picks the ids. A list of collections has their validators and the pipelines of views, of up to 16 MiB each. The stage is
  // of 6.0, and older versions have no images.
  const collections = session
    .db('admin')
    .aggregate<{ db: string; uuid: Binary }>([
      { $listCatalog: {} },
      { $match: { 'md.options.uuid': { $in: found.map(({ _id }) => _id) } } },
      { $project: { _id: 0, db: 1, uuid: '$md.options.uuid' } },
    ])
  for await (const { db, uuid } of collections) {
    sizes.set(db, (sizes.get(db) ?? 0) + (bytesOf.get(uuid.toString('hex')) ?? 0))
  }
  return sizes
}

async function connectedTenants(session: Session): Promise<ReadonlySet<string>> {
  const { operations, hidden } = await surveyOperations(session, { idleConnections: true })
  return new Set([...operations.flatMap(({ effectiveUsers = [] }) => effectiveUsers.map(({ db }) => db)), ...hidden])
}

async function sizeOf(session: Session, name: string): Promise<number> {
  const { storageSize, indexSize, collections, indexes } = await session.command(name, { dbStats: 1 })
  return Number(storageSize) + Number(indexSize) + FILE_BYTES * (Number(collections) + Number(indexes))
}
