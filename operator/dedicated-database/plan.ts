import { isDeepStrictEqual } from 'node:util'
import { type DatabaseServer, ServerReason, UPDATE_HELD } from '../../crds/database-server.ts'
import { DatabaseReason, type DatabasePhase, type DedicatedDatabase, isCreated } from '../../crds/dedicated-database.ts'
import type { Condition } from '../../crds/kind.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import type { Plan as CatalogPlan } from '../../crds/plan.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { conditionOf, type Decision, notReady, ready } from '../../store/conditions.ts'
import { withoutPullError } from '../kubernetes/pod-state.ts'
import { type Full, fullMessage } from '../quota/quota.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { type ObservedSecret, passwordSteps, type PasswordStep, type ServerAddress } from '../shared-instance/password-steps.ts'
import {
  type ArchiveAction,
  archiveStep,
  backupsRefusal,
  endOfArchive,
  isSuperfluous,
  type ObservedBackups,
  restoreBlocker,
} from './backups.ts'
import { extensionSteps } from './extensions.ts'
import { accessOf, monitoringOf, type PlanSize, prefixOf, type ServerShape, type Size, sizeOf } from './resources.ts'
import { addressIn, isInForce, isObserved, isSettled, requestedGiB } from './server-state.ts'
import { isHostnameAssigned } from './ssh-tunnel.ts'

/** Observed state that a decision may depend on, read once by observe.ts. */
export interface Observed {
  readonly database: DedicatedDatabase
  /** Set when the quota of the namespace does not admit the database; server and Secret are not read then. */
  readonly full: Full | undefined
  readonly region: 'served' | 'unknown' | 'motor-missing'
  /** Plan that the spec names. */
  readonly plan: CatalogPlan | undefined
  /** Endpoint of the SSH tunnel; undefined without `spec.sshTunnel`, and without an endpoint in the region. */
  readonly endpoint: TunnelEndpoint | undefined
  /** Slug of the organization that the namespace belongs to; undefined when it belongs to none. */
  readonly organization: string | undefined
  /** Which labels the Namespace lacks to belong to one. */
  readonly tenancyProblem?: string | undefined
  /** Uid of the namespace; undefined while it is unknown. */
  readonly namespaceUid: string | undefined
  readonly server: DatabaseServer | undefined
  /** Whether the operator has an admin connection to the server. */
  readonly isOpen: boolean
  readonly secret: ObservedSecret
  /** Whether the tenant has set another password than the Secret has. */
  readonly passwordChanged: boolean
  /** Whether the database has other extensions than the status. */
  readonly extensionsChanged: boolean
  readonly backups: ObservedBackups
}

/** One action of a plan. A crash after any action is harmless: the next reconcile does what is missing. */
export type Action =
  | PasswordStep
  | ArchiveAction
  | 'add-finalizer'
  /** Records the hostname of the SSH tunnel in the status. */
  | 'assign-hostname'
  /** Creates the server, or gives it the desired size and access. */
  | 'server'
  /** Gives database and login of a restored server the names of this database. */
  | 'adopt'
  | 'claim'
  | 'admit'
  | 'verify'
  /** Installs the extensions of the spec that the database lacks. */
  | 'extensions'
  | 'delete-server'
  /** Records the use until the request of the deletion, which no object has any more after it. */
  | 'record-usage'
  | 'forget-secret'
  | 'release'

/** Phase and `Ready` condition after the actions. */
export interface State {
  readonly phase: DatabasePhase
  readonly decision: Decision
}

export interface Plan {
  readonly actions: readonly Action[]
  /** Undefined when there is no status to write. */
  readonly state: State | undefined
  /** Size, access and add-ons that the server should have; undefined when the server is not changed. */
  readonly shape?: ServerShape | undefined
  /** Size of the plan in the spec; undefined when that plan is unknown or refused. A server of this size counts as this plan. */
  readonly size?: Size | undefined
  readonly requeueAfterMs?: number | undefined
}

/** Interval in ms of checking a Secret of another owner, which causes no event here. */
const SECRET_AGAIN_MS = 30_000
/** Interval in ms of checking a server that is being deleted, or whose admin connection is not open yet. */
const SERVER_AGAIN_MS = 1_000

const state = (phase: DatabasePhase, decision: Decision): State => ({ phase, decision })
const failed = (reason: DatabaseReason, message: string): State => state('failed', notReady(reason, message))

/**
 * Decides what a DedicatedDatabase needs. Pure: each branch is a row in plan.test.ts.
 *
 *     provisioning, restoring ──▶ running ◀──▶ updating        any ──▶ deleting
 *               └───────────────────┴─────────────┴──▶ failed ──▶ as before, when the reason is gone
 */
export function planDatabase(observed: Observed): Plan {
  const { database, full } = observed
  if (database.metadata.deletionTimestamp !== undefined) return planDeletion(observed)
  // A database above the quota needs no clean-up, so it gets no finalizer.
  if (full) return { actions: [], state: failed(DatabaseReason.QuotaExceeded, fullMessage(full, 'dedicated databases')) }
  const plan = planLiving(observed)
  const isGuarded = database.metadata.finalizers?.includes(FINALIZER) === true
  return isGuarded ? plan : { ...plan, actions: ['add-finalizer', ...plan.actions] }
}

function planDeletion({ database, server, backups }: Observed): Plan {
  const { finalizers = [], annotations: notes } = database.metadata
  if (!finalizers.includes(FINALIZER)) return { actions: [], state: undefined }
  const isForced = notes?.[annotations.forceDelete] === 'true'
  const remove = server && server.metadata.deletionTimestamp === undefined ? (['delete-server'] as const) : []
  if (server && !isForced) return deleting(remove, serverGoes(server))
  // The agent of the server has ended, so the archive gets no more objects.
  const { actions, message } = endOfArchive(database, backups.archive)
  if (message !== undefined && !isForced) return deleting(actions, message)
  return { actions: [...remove, ...actions, 'record-usage', 'forget-secret', 'release'], state: undefined }
}

const deleting = (actions: readonly Action[], message: string): Plan => ({
  actions,
  state: state('deleting', notReady(DatabaseReason.Deleting, message)),
  requeueAfterMs: SERVER_AGAIN_MS,
})

function serverGoes(server: DatabaseServer): string {
  const reason = conditionOf(server, 'Ready')?.message
  return `its server ${server.metadata.name} and its data are being deleted${reason === undefined ? '' : `: ${reason}`}`
}

function planLiving(observed: Observed): Plan {
  const refused = refusal(observed)
  if (refused) return { actions: [], state: refused }
  const shape = desiredShape(observed)
  if (!shape) return { actions: [], state: unknownPlan(observed) }
  const plan = planShaped(observed, shape)
  const actions = isHostnameAssigned(observed) ? plan.actions : (['assign-hostname', ...plan.actions] as const)
  return { ...plan, actions, size: shape.size }
}

/** Plans the archive first, and then the server, which waits for the archive before it makes backups. */
function planShaped(observed: Observed, shape: ServerShape): Plan {
  const { database, server, backups } = observed
  const { actions: archive, blocker } = archiveStep(database, backups.archive)
  const awaited = server ? undefined : restoreBlocker(database, backups)
  if (awaited !== undefined) return { actions: archive, state: inProgress(database, awaited), requeueAfterMs: SERVER_AGAIN_MS }
  const { size, access, archive: present, monitoring } = server?.spec ?? {}
  if (blocker !== undefined && !present) {
    return { actions: archive, state: waiting(observed, blocker), requeueAfterMs: SERVER_AGAIN_MS }
  }
  if (!server || !isDeepStrictEqual({ size, access, archive: present, monitoring }, { ...shape })) {
    return { actions: [...archive, 'server'], state: waiting(observed), shape }
  }
  const plan = planOnServer(observed, server)
  return { ...plan, actions: [...archive, ...plan.actions] }
}

const unknownPlan = ({ database }: Observed): State => failed(DatabaseReason.UnknownPlan, `unknown plan: ${database.spec.plan}`)

/** Returns the failure that ends only when a person changes the database, its Plan or its Region; undefined when there is none. */
function refusal(observed: Observed): State | undefined {
  const { database, organization, server } = observed
  if (organization === undefined) {
    return failed(DatabaseReason.NoAccess, observed.tenancyProblem ?? 'its namespace belongs to no organization')
  }
  if (isCreated(database) && !server) {
    return failed(DatabaseReason.ServerUnavailable, 'its server was deleted with its data: delete the database')
  }
  const refused = (isCreated(database) ? undefined : regionRefusal(observed)) ?? planRefusal(observed)
  if (refused) return refused
  const backups = backupsRefusal(database, observed.backups, server !== undefined)
  return backups && failed(backups.reason, backups.message)
}

function regionRefusal({ database: { spec }, region }: Observed): State | undefined {
  if (region === 'unknown') return failed(DatabaseReason.UnknownRegion, `unknown region: ${spec.region}`)
  if (region === 'motor-missing') return failed(DatabaseReason.UnsupportedMotor, `this region does not run ${spec.motor}`)
  return undefined
}

function planRefusal({ database: { spec, status }, plan, server }: Observed): State | undefined {
  if (!plan) return undefined
  const { engines, storageGiB } = plan.spec
  // A Plan that loses a motor rejects new databases only: databases that have the Plan in force keep it.
  if (status?.plan !== spec.plan && !engines.includes(spec.motor)) {
    return failed(DatabaseReason.PlanWithoutMotor, `the plan ${spec.plan} does not allow ${spec.motor}`)
  }
  const present = Math.max(status?.storageGiB ?? 0, requestedGiB(server))
  if (storageGiB >= present) return undefined
  const message = `the plan ${spec.plan} has ${storageGiB} GiB of storage, and the database has ${present} GiB: storage only grows`
  return failed(DatabaseReason.StorageShrinks, message)
}

/** Returns the desired size and access of the server; undefined without a Plan. A database whose Plan was deleted keeps its size. */
function desiredShape({ database, plan, organization, server, endpoint }: Observed): ServerShape | undefined {
  const { spec, status } = database
  const size = plan?.spec ?? (status?.plan === spec.plan ? formerPlan(server) : undefined)
  if (!size || organization === undefined) return undefined
  const edges = endpoint?.metadata.name
  const addOns = { archive: prefixOf(database), monitoring: monitoringOf(database) }
  return { size: sizeOf(size), access: accessOf(database, size, { organization, edges }), ...addOns }
}

function formerPlan(server: DatabaseServer | undefined): PlanSize | undefined {
  const { size, access } = server?.spec ?? {}
  return size && { ...size, closedByDefault: access?.sources !== undefined }
}

function planOnServer(observed: Observed, server: DatabaseServer): Plan {
  const { database, secret, isOpen } = observed
  const held = conditionOf(server, UPDATE_HELD)
  if (held?.reason === ServerReason.StorageNotExpandable) {
    return { actions: [], state: failed(DatabaseReason.StorageNotExpandable, held.message) }
  }
  const at = addressIn(server)
  if (!at || !isInForce(server)) return { actions: [], state: waiting(observed) }
  if (secret === 'foreign') {
    const message = `the Secret ${secretName(database)} has another owner: delete it, or give the database another name`
    return { actions: [], state: failed(DatabaseReason.SecretTaken, message), requeueAfterMs: SECRET_AGAIN_MS }
  }
  const actions = stepsOf(observed, server, at)
  const superfluous = isSuperfluous(database, observed.backups.archive) ? (['delete-archive'] as const) : []
  if (actions.length === 0 || isOpen) return { actions: [...actions, ...superfluous], state: RUNNING }
  // After a start of the operator a server is ready before its admin connection is open.
  return { actions: [], state: isSettled(database, server) ? undefined : waiting(observed), requeueAfterMs: SERVER_AGAIN_MS }
}

const RUNNING = state('running', ready(DatabaseReason.Running, 'the database accepts logins'))

/** Returns the actions on the engine and the Secret. The claim also sets the limits of a new size, and repairs the login after a failure. */
function stepsOf(observed: Observed, server: DatabaseServer, at: ServerAddress): readonly Action[] {
  const { database, secret, passwordChanged } = observed
  const { spec, status } = database
  const extensions = extensionSteps(observed)
  if (!isCreated(database)) {
    const adopt = spec.restoreFrom ? (['adopt'] as const) : []
    return [secret === 'damaged' ? 'renew-secret' : 'secret', ...adopt, 'claim', 'admit', 'verify', ...extensions]
  }
  const steps = passwordSteps(
    {
      desired: spec.passwordVersion,
      inForce: { version: status?.passwordVersion, id: status?.passwordId },
      secret,
      isChanged: passwordChanged,
    },
    at,
  )
  if (!isSettled(database, server)) return [...steps, 'claim', 'admit', 'verify', ...extensions]
  return steps.some((step) => step !== 'move-secret') ? [...steps, 'verify', ...extensions] : [...steps, ...extensions]
}

/** Reasons of a server that has failed, as opposed to one that is still starting. */
const SERVER_FAILURES: ReadonlySet<string> = new Set([
  ServerReason.MotorUnavailable,
  ServerReason.Crashed,
  ServerReason.AdminSecretLost,
  ServerReason.Unsafe,
])

/**
 * State of a database whose server is not ready, or does not have its desired size, access and add-ons in force. `reason`: what else it waits
 * for.
 */
function waiting(observed: Observed, reason?: string): State {
  const { database, server } = observed
  const condition = conditionOf(server ?? {}, 'Ready')
  if (condition && isFailing(observed, condition))
    return failed(DatabaseReason.ServerUnavailable, withoutPullError(condition.message))
  const cause = reason ?? (isCreated(database) ? conditionOf(server ?? {}, UPDATE_HELD)?.message : condition?.message)
  return inProgress(database, cause)
}

function inProgress(database: DedicatedDatabase, cause: string | undefined): State {
  if (isCreated(database)) return state('updating', notReady(DatabaseReason.Updating, cause ?? 'a change is being applied'))
  const { restoreFrom } = database.spec
  if (!restoreFrom) return state('provisioning', notReady(DatabaseReason.StartingServer, cause ?? 'the server is being created'))
  const { databaseId, time } = restoreFrom
  const message = cause ?? `the state of the database ${databaseId} at ${time} is being restored`
  return state('restoring', notReady(DatabaseReason.Restoring, message))
}

/** Whether a server has failed, or is down without a change of its spec. */
function isFailing({ database, server }: Observed, { status, reason }: Condition): boolean {
  const isDown = status === 'False' && isCreated(database) && server !== undefined && isObserved(server)
  return isDown || SERVER_FAILURES.has(reason)
}
