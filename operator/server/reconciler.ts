import { DatabaseServer, DELETION_HELD, ServerReason, UPDATE_HELD } from '../../crds/database-server.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { MooringError } from '../../shared/errors.ts'
import { type Backoff, backoffMs } from '../../shared/timers.ts'
import { notReady, ready, type Decision, withCondition, withoutCondition, isReady } from '../../store/conditions.ts'
import { keyOf, type Key, type Store } from '../../store/port.ts'
import { type AdminTarget, EngineCode, type ExtensionCalls } from '../engines/engine.ts'
import { createReporter } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins, OpenServer } from './admins.ts'
import { accessOf } from './access.ts'
import { ADMIN_SECRET_LOST, createAdminSecrets } from './credentials.ts'
import { serverDecision } from './plan.ts'
import type { AdminCredentials, ServerRuntime, ServerState } from './runtime.ts'

export interface ServerDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the index `server`: the DatabaseServer of an instance. */
  readonly instances: Cache<typeof SharedInstance>
  /** Dedicated databases, with the index `server`: the DatabaseServer of a database that is not being deleted. */
  readonly databases?: Cache<typeof DedicatedDatabase> | undefined
  readonly runtime: ServerRuntime
  /** Whether the Namespace of the servers is being deleted, with all that is in it. Default: it is not. */
  readonly isNamespaceGoing?: (() => boolean) | undefined
  readonly admins: Admins
  /** Admin connections of Mooring's own servers, kept apart from those of servers with tenants. */
  readonly ownAdmins?: Admins | undefined
  readonly now: () => Date
}

/** Properties that a running server reports. */
type Offer = Pick<NonNullable<DatabaseServer['status']>, 'engineVersion' | 'extensions'>
type Running = Extract<ServerState, { readonly phase: 'running' }>
/** Stands for the password on a server that has no login for an exporter. */
const NO_EXPORTER = ''
const NOTHING: Offer = { engineVersion: undefined, extensions: undefined }

/** Errors that a retry does not resolve, each with its condition reason. */
const UNUSABLE: ReadonlyMap<string, ServerReason> = new Map([
  [ADMIN_SECRET_LOST, ServerReason.AdminSecretLost],
  [EngineCode.unsafe, ServerReason.Unsafe],
])

/** Interval of reconciling a server that is starting or failed, or that has no admin connection yet, when no event comes earlier. */
const RETRY_MS = 1_000

/** Number of attempts to apply access rules before the intervals grow. Rules arrive within seconds; a server that hangs takes seconds for each attempt. */
const QUICK_ATTEMPTS = 8
const ACCESS_BACKOFF: Backoff = { baseMs: RETRY_MS, maxMs: 30_000 }

/** Interval after the given number of failed attempts, without jitter: each server has its own attempts. */
const accessDelayMs = (attempts: number): number => backoffMs(ACCESS_BACKOFF, Math.max(1, attempts - QUICK_ATTEMPTS + 1), () => 1)

/** Creates the reconciler that brings a DatabaseServer up or removes it, reports its state, and keeps its admin connection open. */
export function createServerReconciler(deps: ServerDeps): (key: Key) => Promise<Outcome> {
  const { store, servers, instances, databases, runtime, isNamespaceGoing = () => false } = deps
  const adminsOf = ({ spec }: DatabaseServer) => (spec.tenancy === 'internal' ? (deps.ownAdmins ?? deps.admins) : deps.admins)
  const say = createReporter(deps)
  const firstObservation = createFirstObservation(deps.now)
  /** Access that is in force, by uid of the server. */
  const admitted = new Map<string, string>()
  /** Password that the exporter's login has, or {@link NO_EXPORTER}, by uid of the server. */
  const monitored = new Map<string, string>()
  /** Number of attempts in a row after which access is not in force yet, by uid of the server. */
  const delays = new Map<string, number>()
  const secrets = createAdminSecrets({ store, adoptsPassword: runtime.adoptsPassword === true })

  /** Forgets which access and login are in a server, so that both are applied again. */
  function forgetApplied({ metadata: { uid } }: DatabaseServer): void {
    admitted.delete(uid)
    monitored.delete(uid)
  }

  async function remove(server: DatabaseServer): Promise<Outcome> {
    await adminsOf(server).forget(server.metadata.name)
    if (!(await runtime.remove(server))) return { result: 'waiting', reason: ServerReason.Stopping, requeueAfterMs: RETRY_MS }
    return release(server)
  }

  /** Forgets a server that is gone, and lets its object go. */
  async function release(server: DatabaseServer): Promise<Outcome> {
    secrets.forget(server)
    firstObservation.forget(server)
    forgetApplied(server)
    delays.delete(server.metadata.uid)
    const finalizers = (server.metadata.finalizers ?? []).filter((name) => name !== FINALIZER)
    await store.mergePatch(DatabaseServer, keyOf(server), { metadata: { finalizers } }, { uid: server.metadata.uid })
    return { result: 'settled', reason: ServerReason.Stopping }
  }

  /** Lets a server go whose pod and volume Kubernetes deletes with the Namespace. The operator has no rights there any more. */
  async function abandon(server: DatabaseServer): Promise<Outcome> {
    await adminsOf(server).forget(server.metadata.name)
    return release(server)
  }

  async function offerOf(server: DatabaseServer, state: ServerState, credentials: AdminCredentials): Promise<Offer> {
    const { engineVersion, extensions } = server.status ?? {}
    if (state.phase !== 'running') {
      await adminsOf(server).forget(server.metadata.name)
      return { engineVersion, extensions }
    }
    const target = { ...state.admin, ...credentials, extensionCalls: extensionCallsOf(server) }
    const way = adminsOf(server).open(server, target)
    if (!way) return NOTHING
    if (way.fresh) forgetApplied(server)
    if (way.fresh || engineVersion === undefined || extensions === undefined) return hardened(server, way.opened)
    return { engineVersion, extensions }
  }

  /**
   * Applies `spec.access` of a running dedicated server: after a change, and once for each connection.
   * @returns undefined when it is in force, otherwise the reason why it is not
   */
  async function applyAccess(server: DatabaseServer): Promise<string | undefined> {
    const access = accessOf(server)
    const admin = access && adminsOf(server).get(server.metadata.name)?.admin
    const rule = JSON.stringify(access)
    if (!admin || admitted.get(server.metadata.uid) === rule) return undefined
    try {
      await admin.admit(access.isPrivate ? [] : access.sources)
    } catch (error) {
      // The runtime brings the new rules to the server, or sessions are ending.
      if (error instanceof MooringError && error.code === EngineCode.unavailable) return error.message
      throw error
    }
    admitted.set(server.metadata.uid, rule)
    return undefined
  }

  /** Creates or drops the exporter's login of a running dedicated server: after a change, and once for each connection. */
  async function applyMonitoring({ metadata, spec }: DatabaseServer, { exporterPassword }: Running): Promise<void> {
    const open = spec.tenancy === 'dedicated' ? deps.admins.get(metadata.name) : undefined
    if (!open || monitored.get(metadata.uid) === (exporterPassword ?? NO_EXPORTER)) return
    await open.admin.monitor(exporterPassword)
    monitored.set(metadata.uid, exporterPassword ?? NO_EXPORTER)
  }

  /** Hardens a server. A connection that is kept open belongs to a hardened server. */
  async function hardened(server: DatabaseServer, { admin }: OpenServer): Promise<Offer> {
    try {
      await admin.harden()
      return { engineVersion: await admin.version(), extensions: await admin.extensions() }
    } catch (error) {
      await adminsOf(server).forget(server.metadata.name)
      throw error
    }
  }

  /** Number of instances that delay the server's deletion; none when an annotation allows to delete their data. */
  function tenantsToWaitFor({ metadata }: DatabaseServer): number {
    if (metadata.annotations?.[annotations.forceDelete] === 'true') return 0
    return instances.countByIndex('server', metadata.name) + (databases?.countByIndex('server', metadata.name) ?? 0)
  }

  /** Conditions beside Ready: what delays the server's deletion, or a change of its spec. */
  function alarms(server: DatabaseServer, state: ServerState) {
    const { deletionTimestamp, generation } = server.metadata
    const stamp = { generation, now: deps.now() }
    const held = state.phase === 'running' ? state.held : undefined
    const others = held
      ? withCondition(server.status?.conditions, ready(held.reason, held.message), { ...stamp, type: UPDATE_HELD })
      : withoutCondition(server.status?.conditions, UPDATE_HELD)
    if (deletionTimestamp === undefined) return { conditions: others }
    const message = `${tenantsToWaitFor(server)} instances are on it: it is deleted after them`
    const decision = ready(ServerReason.InstancesLeft, message)
    return { conditions: withCondition(others, decision, { ...stamp, type: DELETION_HELD }) }
  }

  /** Generation that is in force; undefined while that is the former one: it stays in the status then. */
  const generationInForce = ({ metadata }: DatabaseServer, state: ServerState): number | undefined =>
    state.phase === 'running' && state.held === undefined ? metadata.generation : undefined

  async function report(
    server: DatabaseServer,
    state: ServerState,
    { decision, ...offer }: Offer & { readonly decision: Decision },
  ): Promise<void> {
    const address =
      state.phase === 'running'
        ? {
            host: state.host,
            port: state.port,
            tls: state.tls ?? null,
            internalHost: state.internalHost ?? null,
            edgeAddress: accessOf(server)?.edges === undefined ? null : edgeAddressOf(state.admin),
          }
        : {}
    const observedGeneration = generationInForce(server, state)
    await say(DatabaseServer, server, decision, { ...address, ...offer, ...alarms(server, state), observedGeneration })
  }

  /** Reports why a server accepts no new tenants. Its present tenants stay connected. */
  async function unusable(server: DatabaseServer, reason: ServerReason, { message }: MooringError): Promise<Outcome> {
    const decision = notReady(reason, message)
    await say(DatabaseServer, server, decision, { observedGeneration: undefined })
    return { result: 'waiting', reason: decision.reason, requeueAfterMs: RETRY_MS }
  }

  async function bringUp(server: DatabaseServer, credentials: AdminCredentials): Promise<Outcome> {
    const state = await runtime.ensure(server, credentials)
    if (firstObservation.isUnknown(server, state))
      return { result: 'waiting', reason: ServerReason.Starting, requeueAfterMs: RETRY_MS }
    const offer = await offerOf(server, state, credentials)
    const decision = serverDecision(state, offer.engineVersion)
    const blocker = state.phase === 'running' ? await applyAccess(server) : undefined
    if (state.phase === 'running' && blocker !== undefined) return accessDelayed(server, state, { decision, ...offer, blocker })
    delays.delete(server.metadata.uid)
    await report(server, state, { decision, ...offer })
    // After the report: a server serves clients also without a login for its exporter.
    if (state.phase === 'running') await applyMonitoring(server, state)
    if (state.phase === 'running' && !state.held) return { result: 'settled', reason: decision.reason }
    return { result: 'waiting', reason: decision.reason, requeueAfterMs: RETRY_MS }
  }

  /** Reports why `spec.access` is not in force. The status keeps the generation that is. */
  async function accessDelayed(
    server: DatabaseServer,
    state: Running,
    { blocker, ...offered }: Offer & { readonly decision: Decision; readonly blocker: string },
  ): Promise<Outcome> {
    const { uid } = server.metadata
    const attempts = (delays.get(uid) ?? 0) + 1
    delays.set(uid, attempts)
    const message = `the new access rules are not in force yet: ${blocker}`
    await report(server, { ...state, held: { reason: ServerReason.Updating, message } }, offered)
    return { result: 'waiting', reason: 'ApplyingAccess', requeueAfterMs: accessDelayMs(attempts) }
  }

  return async function reconcileServer(key) {
    const server = servers.get(key)
    if (!server) return { result: 'settled', reason: 'Gone' }
    const isGoing = server.metadata.deletionTimestamp !== undefined
    if (isGoing && isNamespaceGoing()) return abandon(server)
    // A server with instances keeps serving: only then can their data be moved to another server.
    if (isGoing && tenantsToWaitFor(server) === 0) return remove(server)
    try {
      return await bringUp(server, await secrets.of(server))
    } catch (error) {
      const reason = error instanceof MooringError ? UNUSABLE.get(error.code) : undefined
      if (!(error instanceof MooringError) || reason === undefined) throw error
      return unusable(server, reason, error)
    }
  }
}

/** Time for a server to be observed, and its connection to be opened, after the operator's start: a status from before the start counts until then. */
export const GRACE_MS = 15_000

interface FirstObservation {
  readonly isUnknown: (server: DatabaseServer, state: ServerState) => boolean
  /** Forgets a deleted server. */
  readonly forget: (server: DatabaseServer) => void
}

/**
 * Detects servers that were ready before this process started and have not been observed since. A runtime reports `starting` until its
 * first observation; written to the status at once, that would change every instance of every server twice at each restart of the operator,
 * which restarts no server.
 */
export function createFirstObservation(now: () => Date): FirstObservation {
  /** End of the wait for the first observation, by uid of the server; 0 after the observation. */
  const deadlines = new Map<string, number>()

  return {
    isUnknown(server, state) {
      const { uid } = server.metadata
      const at = now().getTime()
      const deadline = deadlines.get(uid) ?? at + GRACE_MS
      const unknown = state.phase === 'starting' && isReady(server) && at < deadline
      deadlines.set(uid, unknown ? deadline : 0)
      return unknown
    },
    forget: ({ metadata }) => void deadlines.delete(metadata.uid),
  }
}

const extensionCallsOf = ({ spec }: DatabaseServer): ExtensionCalls =>
  spec.tenancy === 'dedicated' ? '/v1/databases/{id}/extensions' : '/v1/instances/{id}/extensions'

/** Returns the address for edges. A former source may stay in the status; edges use it over loopback alone. */
const edgeAddressOf = ({ host, port, edgeSource }: Pick<AdminTarget, 'host' | 'port' | 'edgeSource'>) => ({
  host,
  port,
  ...(edgeSource !== undefined && { source: edgeSource }),
})
