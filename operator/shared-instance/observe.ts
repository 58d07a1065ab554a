import type { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { allowedExtensions, type Region } from '../../crds/region.ts'
import { isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import type { Quota } from '../quota/quota.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { readCredentials } from './credentials.ts'
import type { Credentials } from './kept-secret.ts'
import type { Places } from './places.ts'
import type { Placement, Observed } from './plan.ts'
import type { Suspicions } from './suspicions.ts'

export interface ObserveDeps {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  readonly servers: Cache<typeof DatabaseServer>
  readonly regions: Cache<typeof Region>
  readonly admins: Admins
  readonly places: Places
  readonly quota: Pick<Quota<SharedInstance>, 'admit'>
  readonly suspicions: Suspicions
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  readonly now: () => Date
}

/** What was read, beside what the decision is made from: the actions work on it. */
export interface Observation {
  readonly observed: Observed
  readonly credentials: Credentials | undefined
  readonly server: DatabaseServer | undefined
  readonly open: OpenServer | undefined
  /** Name of the template's database. */
  readonly template: string | undefined
  /** Extensions that its Region allows. */
  readonly allowedExtensions: readonly string[]
}

/** Reads all that a decision about an instance needs; writes nothing, but holds a place for one that has none. */
export async function observe(deps: ObserveDeps, instance: SharedInstance): Promise<Observation> {
  const mayWait = !isClaimed(instance) && instance.metadata.deletionTimestamp === undefined
  const full = mayWait ? deps.quota.admit(instance) : undefined
  return full ? { ...NOTHING, observed: { ...UNSEEN, instance, now: deps.now().getTime(), full } } : look(deps, instance)
}

/** Of one that waits for room nothing is looked at: there may be thousands. */
const NOTHING = { credentials: undefined, server: undefined, open: undefined, template: undefined, allowedExtensions: [] }
const UNSEEN: Omit<Observed, 'instance' | 'now' | 'full'> = {
  region: 'served',
  placement: { found: 'none' },
  secret: undefined,
  template: 'none',
  oversize: false,
  missing: false,
  passwordChanged: false,
  extensionDropped: false,
}

async function look(deps: ObserveDeps, instance: SharedInstance): Promise<Observation> {
  const secret = whereItMayLive(deps, instance, await secretOf(deps, instance))
  const credentials = typeof secret === 'object' ? secret : undefined
  const template = templateOf(deps, instance)
  const server = serverOf(deps, { instance, credentials, template })
  const open = server && deps.admins.get(server.metadata.name)
  const placement = placementOf({ instance, credentials, server })
  const observed: Observed = {
    instance,
    now: deps.now().getTime(),
    full: undefined,
    region: regionOf(deps, instance),
    placement,
    secret,
    template: instance.spec.templateRef === undefined ? 'none' : template?.status?.name === undefined ? 'missing' : 'ready',
    oversize: deps.suspicions.oversize.has(instance.metadata.uid),
    missing: await isMissing(deps, instance, open),
    passwordChanged: deps.suspicions.password.has(instance.metadata.uid),
    extensionDropped: deps.suspicions.extensions.has(instance.metadata.uid),
  }
  const allowed = allowedExtensions(regionIn(deps, instance), instance.spec.motor)
  return { observed, credentials, server, open, template: template?.status?.name, allowedExtensions: allowed }
}

/** Clean-up may not depend on what is in the tenant's namespace: when that goes, the Secret or the right to read it may be gone first. */
async function secretOf({ store, ca }: ObserveDeps, instance: SharedInstance): Promise<Kept> {
  const judgement = { instance, ca: ca() }
  if (instance.metadata.deletionTimestamp === undefined) return readCredentials(store, judgement)
  if (isClaimed(instance)) return undefined
  try {
    return await readCredentials(store, judgement)
  } catch (error) {
    if (!isStoreError(error, 'forbidden')) throw error
    return undefined
  }
}

type Kept = Credentials | 'damaged' | 'foreign' | undefined

/**
 * Until the status says so, only the Secret's label tells the server, and whoever may write Secrets in a tenant's namespace could put any
 * there: one that is none for this instance, or is gone with all that was on it, does not count.
 */
function whereItMayLive({ servers }: ObserveDeps, { spec, status }: SharedInstance, secret: Kept): Kept {
  if (typeof secret !== 'object' || status?.serverRef !== undefined) return secret
  const server = servers.get({ namespace: SHARED_NAMESPACE, name: secret.server })
  if (server?.spec.tenancy !== 'shared') return 'damaged'
  // A copy lives where its template does.
  const isAlike = server.spec.region === spec.region && server.spec.motor === spec.motor
  return isAlike || spec.templateRef !== undefined ? secret : 'damaged'
}

function templateOf({ instances }: ObserveDeps, { spec, metadata }: SharedInstance): SharedInstance | undefined {
  const template = spec.templateRef && instances.get({ namespace: metadata.namespace, name: spec.templateRef.name })
  return template?.metadata.deletionTimestamp === undefined ? template : undefined
}

interface Chosen {
  readonly instance: SharedInstance
  readonly credentials: Credentials | undefined
  readonly template?: SharedInstance | undefined
}

/** The server it has, else (unless it is going) the template's, else one with room. */
function serverOf(deps: ObserveDeps, { instance, credentials, template }: Chosen): DatabaseServer | undefined {
  const { servers, places } = deps
  const { uid, deletionTimestamp } = instance.metadata
  const placed = instance.status?.serverRef?.name
  const name = placed ?? credentials?.server
  if (name === undefined) {
    if (deletionTimestamp === undefined) return newServerOf(deps, { instance, credentials, template })
    // Deleted amid its claim, Secret and all, it may have its database where its place was held.
    return servers.get({ namespace: SHARED_NAMESPACE, name: places.of(uid) ?? '' })
  }
  if (placed === undefined) places.hold(uid, name)
  return servers.get({ namespace: SHARED_NAMESPACE, name })
}

function newServerOf(deps: ObserveDeps, { instance, template }: Chosen): DatabaseServer | undefined {
  return instance.spec.templateRef === undefined ? deps.places.choose(instance) : serverOfTemplate(deps, template)
}

function serverOfTemplate({ servers }: ObserveDeps, template: SharedInstance | undefined): DatabaseServer | undefined {
  const name = template?.status?.serverRef?.name
  return name === undefined ? undefined : servers.get({ namespace: SHARED_NAMESPACE, name })
}

function placementOf({ instance, credentials, server }: Chosen & { readonly server: DatabaseServer | undefined }): Placement {
  const known = instance.status?.serverRef !== undefined || credentials !== undefined
  if (!server) return { found: known ? 'removed' : 'none' }
  const { host, port } = server.status ?? {}
  if (!isReady(server) || host === undefined || port === undefined) return { found: 'down' }
  return { found: 'reachable', host, port }
}

const regionIn = ({ regions }: ObserveDeps, { spec }: SharedInstance): Region | undefined =>
  regions.list().find((candidate) => candidate.spec.id === spec.region)

function regionOf(deps: ObserveDeps, instance: SharedInstance): Observed['region'] {
  const { spec } = instance
  const region = regionIn(deps, instance)
  if (!region) return 'unknown'
  return region.spec.motors.some(({ id }) => id === spec.motor) ? 'served' : 'motor-missing'
}

/** Asked of the engine only for an instance that the sweeper did not find: a settled one costs no query. */
async function isMissing(
  { suspicions }: ObserveDeps,
  { metadata, status }: SharedInstance,
  open: OpenServer | undefined,
): Promise<boolean> {
  if (!suspicions.missing.has(metadata.uid) || !open || status?.name === undefined) return false
  const { database } = await open.admin.find(status.name)
  if (database) suspicions.missing.delete(metadata.uid)
  return !database
}
