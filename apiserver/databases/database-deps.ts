import { z } from 'zod'
import type { Namespace } from '../../crds/core.ts'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Plan } from '../../crds/plan.ts'
import type { DatabaseRecords } from '../../journal/databases.ts'
import type { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { JournalReader } from '../../journal/port.ts'
import type { Access, Verb } from '../../store/access.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import type { Scopes } from '../auth/scope.ts'
import { createRegions, type Regions, type RegionsDeps } from '../catalog/regions.ts'
import { ApiError } from '../http/errors.ts'
import { retryLater } from '../instances/instance-waits.ts'
import { credentialsInForce } from '../resources/password-in-force.ts'
import type { Principal, Reply } from '../http/route.ts'
import { isUid } from '../instances/instance-lookup.ts'
import { type Audit, noAudit } from '../journal/audit.ts'
import { type CatchUp, createCatchUp, WAIT_MS, withinBudget } from '../resources/cache-waits.ts'
import { createCreationQuota, type Quota } from '../resources/creations.ts'
import { idParam } from '../tenancy/tenancy-deps.ts'
import type { WithoutBackups } from './database-backups.ts'
import { type ConnectionView, DatabaseView, databaseView, readConnection } from './database-view.ts'

export const DATABASES_PATH = '/v1/databases'
export const DATABASE_PATH = `${DATABASES_PATH}/{id}`
export const DatabaseData = z.object({ database: DatabaseView })
/** Parameters of the routes below `/v1/databases/{id}`. Text that is not an id is 404, not 400. */
export const DatabaseParams = z.object({ id: idParam('Id of the database.') })

/** Dependencies that the process provides. */
export interface DatabaseWiring extends RegionsDeps {
  readonly store: Store
  readonly access: Access
  readonly scopes: Scopes
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly plans: Cache<typeof Plan>
  readonly archives: Cache<typeof DatabaseArchive>
  readonly namespaces: Cache<typeof Namespace>
  /** Grants of restores; absent in an installation without a repository of backups. */
  readonly restoreGrants?: RestoreGrants | undefined
  readonly withoutBackups?: WithoutBackups
  /** Maximum number of dedicated databases in a namespace. */
  readonly databasesPerNamespace: number
  /** Time budget of a password rotation in milliseconds. */
  readonly rotationMs?: number
  readonly now?: () => Date
  /** Absent in an installation without a journal. */
  readonly audit?: Audit | undefined
  /** Usage and samples. Absent in an installation without a journal. */
  readonly records?: DatabaseRecords | undefined
  /** Absent where no other process creates resources. */
  readonly catchUp?: CatchUp
  /** Absent in an installation without edges. */
  readonly tunnels?: SshLogins | undefined
}

/** Dependencies of the routes about SSH logins. */
export interface SshLogins {
  readonly tunnelPasswords: Cache<typeof TunnelPassword>
  readonly tokenSecret: Uint8Array
  readonly journal: Pick<JournalReader, 'connections'>
}

/** Dependencies of the routes of dedicated databases. */
export interface DatabaseDeps extends Pick<
  DatabaseWiring,
  | 'store'
  | 'access'
  | 'scopes'
  | 'databases'
  | 'plans'
  | 'archives'
  | 'namespaces'
  | 'restoreGrants'
  | 'withoutBackups'
  | 'records'
> {
  readonly regions: Regions
  readonly quota: Quota
  readonly rotationMs: number
  readonly now: () => Date
  readonly audit: Audit
  readonly catchUp: CatchUp
  readonly find: FindDatabase
  readonly answer: DatabaseReplies
  /**
   * Waits at most `ms` milliseconds until `holds` is true for this database in the cache. Returns the database; undefined after the time.
   * @throws ApiError `conflict` when the database is deleted meanwhile
   */
  readonly until: (of: DedicatedDatabase, holds: (now: DedicatedDatabase) => boolean, ms: number) => Promise<Found>
}
type Found = DedicatedDatabase | undefined

/** Right that a request needs in addition to reading the database. */
export interface DatabaseNeed {
  readonly verb: Verb
  readonly resource: 'dedicateddatabases' | 'secrets' | 'tunnelpasswords'
}

/**
 * Finds a database by its id.
 * @throws ApiError `not_found`, the same for an unknown database and for one that the caller may not read; `forbidden` when the caller may read it
 * but lacks one of `needs`
 */
export type FindDatabase = (principal: Principal, id: string, needs?: readonly DatabaseNeed[]) => Promise<DedicatedDatabase>

/** Renders a database as a reply. */
export interface DatabaseReplies {
  /** Renders with `connection: null`. */
  plain(status: 200 | 201 | 202, database: DedicatedDatabase): DatabaseReply
  /**
   * Renders with the connection from its Secret, once the password in it is in force.
   * @param arrivedAt arrival of the request (`performance.now()`)
   * @throws ApiError `unavailable` when the request's time is used up, `conflict` when another request deletes the database; StoreError
   */
  withConnection(database: DedicatedDatabase, arrivedAt: number): Promise<DatabaseReply>
  /** Renders with `connection: null` for a list. */
  view(database: DedicatedDatabase): DatabaseView
}
export type DatabaseReply = Reply<{ readonly database: DatabaseView }>

/** Maximum time in ms that a request waits until the cache shows its own write. */
export const SEEN_MS = 2_000

export function createDatabaseDeps(wiring: DatabaseWiring): DatabaseDeps {
  const { store, access, scopes, databases, plans, archives, namespaces, restoreGrants, withoutBackups, records } = wiring
  const { now = () => new Date(), audit = noAudit, catchUp = createCatchUp(0), rotationMs = WAIT_MS } = wiring
  const { databasesPerNamespace: max } = wiring
  const regions = createRegions(wiring)
  const until = createWait(databases)
  return {
    store,
    access,
    scopes,
    databases,
    plans,
    archives,
    namespaces,
    restoreGrants,
    withoutBackups,
    records,
    regions,
    now,
    audit,
    catchUp,
    rotationMs,
    quota: createCreationQuota({ cache: databases, max, what: 'dedicated databases' }),
    find: createDatabaseLookup({ access, scopes, databases, catchUp }),
    answer: createReplies({ ...wiring, regions, rotationMs, until }),
    until,
  }
}

type LookupDeps = Pick<DatabaseDeps, 'access' | 'scopes' | 'databases' | 'catchUp'>

function createDatabaseLookup({ access, scopes, databases, catchUp }: LookupDeps): FindDatabase {
  return async function findDatabase(principal, id, needs = []) {
    const uid = id.toLowerCase()
    const database = isUid(uid) ? await catchUp(databases, () => databases.byUid(uid)) : undefined
    const namespace = database?.metadata.namespace
    if (!database || !(await access.may(principal, { verb: 'get', resource: 'dedicateddatabases', namespace }))) {
      throw new ApiError('not_found', 'there is no dedicated database with this id; GET /v1/databases lists yours')
    }
    for (const need of needs) await scopes.require(principal, { ...need, namespace })
    return database
  }
}

type AnswerDeps = Pick<DatabaseWiring, 'store' | 'endpoints'> & Pick<DatabaseDeps, 'regions' | 'rotationMs' | 'until'>

function createReplies({ store, endpoints, regions, rotationMs, until }: AnswerDeps): DatabaseReplies {
  const endpointOf = (name: string) => endpoints?.get({ name })
  const view = (database: DedicatedDatabase, connection?: ConnectionView): DatabaseView =>
    databaseView(database, { region: regions.nameOf(database.spec.region), connection })
  const reply = (status: 200 | 201 | 202, database: DedicatedDatabase, connection?: ConnectionView): DatabaseReply => ({
    status,
    data: { database: view(database, connection) },
    etag: database.metadata.resourceVersion,
  })
  async function withConnection(database: DedicatedDatabase, arrivedAt: number): Promise<DatabaseReply> {
    const found = await credentialsInForce(database, {
      read: (now) => readConnection(store, now, endpointOf),
      next: (now, isLater) => until(now, isLater, rotationMs - (performance.now() - arrivedAt)),
    })
    if (!found) throw retryLater('the password of this database is being replaced; read the database again in 5 s')
    return reply(200, found.object, found.credentials)
  }

  return { plain: (status, database) => reply(status, database), withConnection, view: (database) => view(database) }
}

function createWait(databases: Cache<typeof DedicatedDatabase>): DatabaseDeps['until'] {
  return async function until(of, holds, ms) {
    let seen = false
    const check = (now: DedicatedDatabase | undefined): Found => {
      const isIt = now?.metadata.uid === of.metadata.uid
      // The cache may lag behind and lack a new database, so only a database that the cache had before counts as deleted.
      if (!isIt && seen) throw new ApiError('conflict', 'another request deleted this database meanwhile')
      seen = isIt
      return isIt && holds(now) ? now : undefined
    }
    return withinBudget(Math.max(0, ms), (signal) => databases.waitFor(of.metadata, check, signal))
  }
}

/** Checks that the database is not being deleted. @throws ApiError `conflict` */
export function requireNotDeleting({ metadata }: DedicatedDatabase): void {
  if (metadata.deletionTimestamp !== undefined) throw new ApiError('conflict', 'this database is being deleted')
}
