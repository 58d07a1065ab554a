import type { Namespace } from '../../crds/core.ts'
import { DatabaseArchive, isArchiveOf } from '../../crds/database-archive.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { annotations } from '../../crds/names.ts'
import type { Plan } from '../../crds/plan.ts'
import { allowedExtensions, offerOf, type Region, regionWithId } from '../../crds/region.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import { slugsOf } from '../namespace/resources.ts'
import { labelProblem } from '../namespace/tenancy.ts'
import type { Quota } from '../quota/quota.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { readCredentials } from '../shared-instance/credentials.ts'
import type { Credentials } from '../shared-instance/kept-secret.ts'
import type { Suspicions } from '../shared-instance/slots.ts'
import { archiveKeyOf, type ObservedBackups } from './backups.ts'
import { hasServer } from './indexes.ts'
import type { Observed } from './plan.ts'
import { serverKeyOf } from './resources.ts'
import { isInForce } from './server-state.ts'
import { sshEndpointOf, type SshTunnelDeps } from './ssh-tunnel.ts'

export interface ObserveDeps {
  readonly store: Store
  /** Databases, with the indexes of indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly servers: Cache<typeof DatabaseServer>
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly namespaces: Cache<typeof Namespace>
  readonly archives: Cache<typeof DatabaseArchive>
  /** Grants of restores from other namespaces; absent in an installation without a repository of backups. */
  readonly restoreGrants?: RestoreGrants | undefined
  readonly admins: Pick<Admins, 'get'>
  readonly quota: Pick<Quota<DedicatedDatabase>, 'admit'>
  readonly suspicions: Pick<Suspicions, 'password' | 'extensions'>
  readonly edges?: SshTunnelDeps | undefined
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  readonly now: () => Date
}

/** Observed state, and the objects that the actions need. */
export interface Observation {
  readonly observed: Observed
  readonly credentials: Credentials | undefined
  readonly open: OpenServer | undefined
  /** Extensions that the Region allows for the motor. */
  readonly allowedExtensions: readonly string[]
}

/** Reads the state that a decision about a database depends on. Writes nothing. */
export async function observe(deps: ObserveDeps, database: DedicatedDatabase): Promise<Observation> {
  const { metadata, spec } = database
  const full = mayBeFull(database) ? deps.quota.admit(database) : undefined
  const server = full ? undefined : await serverOf(deps, database)
  const secret = await secretOf(deps, database, server)
  const open = server && deps.admins.get(server.metadata.name)
  const region = regionWithId(deps.regions.list(), spec.region)
  const observed: Observed = {
    database,
    full,
    server,
    secret,
    isOpen: open !== undefined,
    region: offerOf(region, spec.motor),
    plan: deps.plans.get({ name: spec.plan }),
    endpoint: sshEndpointOf(database, deps.edges),
    ...tenancyOf(deps, database),
    passwordChanged: deps.suspicions.password.has(metadata.uid),
    extensionsChanged: deps.suspicions.extensions.has(metadata.uid),
    backups: full ? noBackups(deps.now()) : await backupsOf(deps, database),
  }
  return {
    observed,
    open,
    allowedExtensions: allowedExtensions(region, spec.motor),
    credentials: typeof secret === 'object' ? secret : undefined,
  }
}

function tenancyOf(
  { namespaces }: ObserveDeps,
  { metadata }: DedicatedDatabase,
): Pick<Observed, 'organization' | 'tenancyProblem' | 'namespaceUid'> {
  const name = metadata.namespace ?? ''
  const namespace = namespaces.get({ name })
  return {
    organization: namespace && slugsOf(namespace)?.organization,
    tenancyProblem: labelProblem(name, namespace),
    namespaceUid: namespace?.metadata.uid,
  }
}

const isGoing = ({ metadata }: DedicatedDatabase): boolean => metadata.deletionTimestamp !== undefined
const mayBeFull = (database: DedicatedDatabase): boolean => !hasServer(database) && !isGoing(database)

/**
 * Reads the server. The cache may lag behind and lack a new server, so the store is read during a deletion, and when the cache lacks a server
 * that the status names.
 */
async function serverOf({ store, servers }: ObserveDeps, database: DedicatedDatabase): Promise<DatabaseServer | undefined> {
  const cached = servers.get(serverKeyOf(database))
  return isGoing(database) || (!cached && hasServer(database)) ? store.get(DatabaseServer, serverKeyOf(database)) : cached
}

const noBackups = (now: Date): ObservedBackups => ({ isOffered: false, archive: undefined, source: undefined, now })

/** Reads the archives. The cache may lag behind and lack a new one, so the store is read during a deletion. */
async function backupsOf(deps: ObserveDeps, database: DedicatedDatabase): Promise<ObservedBackups> {
  const key = archiveKeyOf(database.metadata.uid)
  const archive = isGoing(database) ? await deps.store.get(DatabaseArchive, key) : deps.archives.get(key)
  return { isOffered: deps.restoreGrants !== undefined, archive, source: sourceOf(deps, database), now: deps.now() }
}

/** Returns the archive that a database may be restored from: one of its own namespace, or one with a grant of the API server. */
function sourceOf(
  { archives, namespaces, restoreGrants }: ObserveDeps,
  { metadata, spec }: DedicatedDatabase,
): DatabaseArchive | undefined {
  if (!spec.restoreFrom) return undefined
  const databaseId = spec.restoreFrom.databaseId.toLowerCase()
  const { namespace = '', name } = metadata
  const source = archives.get(archiveKeyOf(databaseId))
  if (source?.spec.databaseUid !== databaseId) return undefined
  const grant = restoreGrants?.({ databaseId, time: spec.restoreFrom.time, namespace, name })
  const isGranted = grant !== undefined && metadata.annotations?.[annotations.restoreGrant] === grant
  return isArchiveOf(source, namespaces.get({ name: namespace })) || isGranted ? source : undefined
}

type Kept = Credentials | 'damaged' | 'foreign' | undefined

/** Reads the Secret. Skipped until the server runs with its present spec: no action needs it before. A Secret that names another server is damaged. */
async function secretOf(
  { store, ca }: ObserveDeps,
  database: DedicatedDatabase,
  server: DatabaseServer | undefined,
): Promise<Kept> {
  if (!server || isGoing(database) || !isInForce(server)) return undefined
  const found = await readCredentials(store, { owner: database, ca: ca() })
  return typeof found === 'object' && found.server !== server.metadata.name ? 'damaged' : found
}
