import { type DatabaseServer, ServerReason } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { allowedExtensions, offerOf, type Region, regionWithId } from '../../crds/region.ts'
import { isClaimed, isExtensionReason, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf, isReady } from '../../store/conditions.ts'
import { isStoreError, type Store } from '../../store/port.ts'
import { withoutPullError } from '../kubernetes/pod-state.ts'
import type { Tenancy } from '../namespace/tenancy.ts'
import type { Quota } from '../quota/quota.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { readCredentials } from './credentials.ts'
import type { Credentials } from './kept-secret.ts'
import type { Slots, Suspicions } from './slots.ts'
import type { DownServers, Observed, Placement } from './plan.ts'

export interface ObserveDeps {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  readonly servers: Cache<typeof DatabaseServer>
  readonly regions: Cache<typeof Region>
  readonly admins: Admins
  readonly slots: Slots
  readonly quota: Pick<Quota<SharedInstance>, 'admit'>
  readonly suspicions: Suspicions
  /** Default: every Namespace is a tenant's. */
  readonly tenancy?: Pick<Tenancy, 'problemOf'> | undefined
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  readonly now: () => Date
}

/** Observed state with the objects that the actions need. */
export interface Observation {
  readonly observed: Observed
  readonly credentials: Credentials | undefined
  readonly server: DatabaseServer | undefined
  readonly open: OpenServer | undefined
  /** Name of the template's database. */
  readonly template: string | undefined
  /** Extensions that the Region allows. */
  readonly allowedExtensions: readonly string[]
}

/** Reads the state that a decision about an instance depends on. Writes nothing, but reserves a slot for an instance without one. */
export async function observe(deps: ObserveDeps, instance: SharedInstance): Promise<Observation> {
  const mayWait = !isClaimed(instance) && instance.metadata.deletionTimestamp === undefined
  const refused = mayWait ? await deps.tenancy?.problemOf(instance.metadata.namespace) : undefined
  const full = mayWait && refused === undefined ? deps.quota.admit(instance) : undefined
  if (!full && refused === undefined) return read(deps, instance)
  return { ...NOTHING, observed: { ...UNSEEN, instance, now: deps.now().getTime(), full, refused } }
}

/** Observation of an instance that is not admitted, for which nothing is read: there may be thousands. */
const NOTHING = { credentials: undefined, server: undefined, open: undefined, template: undefined, allowedExtensions: [] }
const UNSEEN: Omit<Observed, 'instance' | 'now' | 'full' | 'refused'> = {
  region: 'served',
  placement: { found: 'none' },
  secret: undefined,
  template: 'none',
  oversize: false,
  missing: false,
  inDoubt: false,
  passwordChanged: false,
  extensionsChanged: false,
}

async function read(deps: ObserveDeps, instance: SharedInstance): Promise<Observation> {
  const secret = whereItMayLive(deps, instance, await secretOf(deps, instance))
  const credentials = typeof secret === 'object' ? secret : undefined
  const template = templateOf(deps, instance)
  const server = serverOf(deps, { instance, credentials, template })
  const open = server && deps.admins.get(server.metadata.name)
  const placement = placementOf(deps, { instance, credentials, server })
  const region = regionWithId(deps.regions.list(), instance.spec.region)
  const observed: Observed = {
    instance,
    now: deps.now().getTime(),
    full: undefined,
    region: offerOf(region, instance.spec.motor),
    placement,
    secret: isMoving(credentials, server) ? { ...credentials, tidy: false } : secret,
    template: instance.spec.templateRef === undefined ? 'none' : template?.status?.name === undefined ? 'missing' : 'ready',
    oversize: deps.suspicions.oversize.has(instance.metadata.uid),
    missing: await isMissing(deps, { instance, server, open }),
    inDoubt: isInDoubt(instance, server),
    passwordChanged: deps.suspicions.password.has(instance.metadata.uid),
    extensionsChanged: deps.suspicions.extensions.has(instance.metadata.uid),
  }
  const allowed = allowedExtensions(region, instance.spec.motor)
  return { observed, credentials, server, open, template: template?.status?.name, allowedExtensions: allowed }
}

/** Whether a reset makes the database on another server than the lost one, which the Secret still names. */
const isMoving = (credentials: Credentials | undefined, server: DatabaseServer | undefined): credentials is Credentials =>
  credentials !== undefined && server !== undefined && credentials.server !== server.metadata.name

/** Reads the Secret. Clean-up does not depend on it: in a namespace that is being deleted, it may be gone or not readable. */
async function secretOf({ store, ca }: ObserveDeps, instance: SharedInstance): Promise<Kept> {
  const expected = { owner: instance, ca: ca() }
  if (instance.metadata.deletionTimestamp === undefined) return readCredentials(store, expected)
  if (isClaimed(instance)) return undefined
  try {
    return await readCredentials(store, expected)
  } catch (error) {
    if (!isStoreError(error, 'forbidden')) throw error
    return undefined
  }
}

type Kept = Credentials | 'damaged' | 'foreign' | undefined

/**
 * Drops a Secret that names a wrong server. Until the status records the server, only the Secret's label names it, and a tenant that can
 * write Secrets could put any name there: a server of another region or motor, or a deleted one, does not count.
 */
function whereItMayLive({ servers }: ObserveDeps, { spec, status }: SharedInstance, secret: Kept): Kept {
  // A claimed database that left a lost server has no server in its status, but a reset keeps its password.
  if (typeof secret !== 'object' || status?.name !== undefined) return secret
  const server = servers.get({ namespace: SHARED_NAMESPACE, name: secret.server })
  if (server?.spec.tenancy !== 'shared') return 'damaged'
  // A copy is on the server of its template.
  return serves(server, spec) || spec.templateRef !== undefined ? secret : 'damaged'
}

/** Whether the server is a shared one of this region and motor. */
const serves = (server: DatabaseServer | undefined, { region, motor }: SharedInstance['spec']): boolean =>
  server?.spec.tenancy === 'shared' && server.spec.region === region && server.spec.motor === motor

function templateOf({ instances }: ObserveDeps, { spec, metadata }: SharedInstance): SharedInstance | undefined {
  const template = spec.templateRef && instances.get({ namespace: metadata.namespace, name: spec.templateRef.name })
  return template?.metadata.deletionTimestamp === undefined ? template : undefined
}

interface Chosen {
  readonly instance: SharedInstance
  readonly credentials: Credentials | undefined
  readonly template?: SharedInstance | undefined
}

/** Server of the instance; without one, and unless it is being deleted, that of its template, or one with a free slot. */
function serverOf(deps: ObserveDeps, { instance, credentials, template }: Chosen): DatabaseServer | undefined {
  const { servers, slots } = deps
  const { uid, deletionTimestamp } = instance.metadata
  const placed = instance.status?.serverRef?.name
  const name = placed ?? chosenBefore(deps, instance, credentials)
  if (name === undefined) {
    if (deletionTimestamp === undefined) return newServerOf(deps, { instance, credentials, template })
    // An instance deleted during its claim, with its Secret gone, may have its database on the server where its slot is reserved.
    return servers.get({ namespace: SHARED_NAMESPACE, name: slots.of(uid) ?? '' })
  }
  if (placed === undefined) slots.hold(uid, name)
  return servers.get({ namespace: SHARED_NAMESPACE, name })
}

/** Server that a claim has chosen already, by the Secret. One that a reset leaves, since it is gone, does not count. */
function chosenBefore(
  { servers }: ObserveDeps,
  { status, spec }: SharedInstance,
  credentials: Credentials | undefined,
): string | undefined {
  if (status?.name === undefined || credentials === undefined) return credentials?.server
  const server = servers.get({ namespace: SHARED_NAMESPACE, name: credentials.server })
  return serves(server, spec) ? credentials.server : undefined
}

function newServerOf(deps: ObserveDeps, { instance, template }: Chosen): DatabaseServer | undefined {
  return instance.spec.templateRef === undefined ? deps.slots.choose(instance) : serverOfTemplate(deps, template)
}

function serverOfTemplate({ servers }: ObserveDeps, template: SharedInstance | undefined): DatabaseServer | undefined {
  const name = template?.status?.serverRef?.name
  return name === undefined ? undefined : servers.get({ namespace: SHARED_NAMESPACE, name })
}

function placementOf(
  deps: ObserveDeps,
  { instance, credentials, server }: Chosen & { readonly server: DatabaseServer | undefined },
): Placement {
  const known = instance.status?.serverRef !== undefined || (credentials !== undefined && !isClaimed(instance))
  if (!server) return known ? { found: 'removed' } : { found: 'none', down: downServers(deps, instance) }
  const { host, port, tls } = server.status ?? {}
  if (!isReady(server) || host === undefined || port === undefined) return { found: 'down', why: whyDown(server) }
  return { found: 'reachable', host, port, tls }
}

/** Servers of the instance's region and motor that are down; undefined when there are none, so that all are full or one is about to be made. */
function downServers({ servers }: ObserveDeps, { spec }: SharedInstance): DownServers | undefined {
  const staying = servers.list().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const reasons = staying.filter((server) => serves(server, spec) && !isReady(server)).map(whyDown)
  if (reasons.length === 0) return undefined
  return { why: reasons.every((why) => why !== undefined) ? reasons[0] : undefined }
}

/**
 * Reason for tenants why a server cannot run; undefined while it is starting. The end of its log may name other tenants, and the error of a pull
 * the cluster's registry and account, so neither is shown.
 */
function whyDown(server: DatabaseServer): string | undefined {
  const condition = conditionOf(server, 'Ready')
  if (!condition || condition.status === 'True' || condition.reason === ServerReason.Starting) return undefined
  return condition.reason === ServerReason.Crashed ? CRASHED : withoutPullError(condition.message)
}

const CRASHED = 'it failed and is being started again; an administrator finds the reason in the log of the operator'

/** Whether a claimed database may be gone or reject its login: it was not ready, for another reason than its extensions, or its server is another one of the name. */
function isInDoubt(instance: SharedInstance, server: DatabaseServer | undefined): boolean {
  const uid = instance.status?.serverRef?.uid
  const isOther = uid !== undefined && server !== undefined && server.metadata.uid !== uid
  const isWorking = isReady(instance) || isExtensionReason(conditionOf(instance, 'Ready')?.reason ?? '')
  return isClaimed(instance) && (isOther || !isWorking)
}

/** Whether the database is missing. Queries the engine only where that is in doubt, or the sweeper reported it: a settled instance costs no query. */
async function isMissing(
  { suspicions }: ObserveDeps,
  { instance, server, open }: Pick<Observation, 'server' | 'open'> & { readonly instance: SharedInstance },
): Promise<boolean> {
  const { metadata, status } = instance
  if (status?.name === undefined) return false
  if (status.serverRef === undefined) return true
  if (!open || !(suspicions.missing.has(metadata.uid) || isInDoubt(instance, server))) return false
  const { database } = await open.admin.find(status.name)
  if (database) suspicions.missing.delete(metadata.uid)
  return !database
}
