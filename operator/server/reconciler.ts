import { DatabaseServer, DELETION_HELD, ServerReason } from '../../crds/database-server.ts'
import { annotations, FINALIZER } from '../../crds/names.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { MooringError } from '../../shared/errors.ts'
import { notReady, ready, type Decision, withCondition, isReady } from '../../store/conditions.ts'
import { keyOf, type Key, type Store } from '../../store/port.ts'
import { EngineCode } from '../engines/engine.ts'
import { createReporter } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins, OpenServer } from './admins.ts'
import { ADMIN_SECRET_LOST, createAdminSecrets } from './credentials.ts'
import { serverDecision } from './plan.ts'
import type { AdminCredentials, ServerRuntime, ServerState } from './runtime.ts'

export interface ServerDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the index `server`: the DatabaseServer of an instance. */
  readonly instances: Cache<typeof SharedInstance>
  readonly runtime: ServerRuntime
  readonly admins: Admins
  /** Admin connections of Mooring's own servers, kept apart from those of servers with tenants. */
  readonly ownAdmins?: Admins | undefined
  readonly now: () => Date
}

/** Properties that a running server reports. */
type Offer = Pick<NonNullable<DatabaseServer['status']>, 'engineVersion' | 'extensions'>
const NOTHING: Offer = { engineVersion: undefined, extensions: undefined }

/** Errors that a retry does not resolve, each with its condition reason. */
const UNUSABLE: ReadonlyMap<string, ServerReason> = new Map([
  [ADMIN_SECRET_LOST, ServerReason.AdminSecretLost],
  [EngineCode.unsafe, ServerReason.Unsafe],
])

/** Interval of reconciling a server that is starting or failed, or that has no admin connection yet, when no event comes earlier. */
const RETRY_MS = 1_000

/** Creates the reconciler that brings a DatabaseServer up or removes it, reports its state, and keeps its admin connection open. */
export function createServerReconciler(deps: ServerDeps): (key: Key) => Promise<Outcome> {
  const { store, servers, instances, runtime } = deps
  const adminsOf = ({ spec }: DatabaseServer) => (spec.tenancy === 'internal' ? (deps.ownAdmins ?? deps.admins) : deps.admins)
  const say = createReporter(deps)
  const firstObservation = createFirstObservation(deps.now)
  const secrets = createAdminSecrets({ store, adoptsPassword: runtime.adoptsPassword === true })

  async function remove(server: DatabaseServer): Promise<Outcome> {
    await adminsOf(server).forget(server.metadata.name)
    if (!(await runtime.remove(server))) return { result: 'waiting', reason: ServerReason.Stopping, requeueAfterMs: RETRY_MS }
    secrets.forget(server)
    firstObservation.forget(server)
    const finalizers = (server.metadata.finalizers ?? []).filter((name) => name !== FINALIZER)
    await store.mergePatch(DatabaseServer, keyOf(server), { metadata: { finalizers } }, { uid: server.metadata.uid })
    return { result: 'settled', reason: ServerReason.Stopping }
  }

  async function offerOf(server: DatabaseServer, state: ServerState, credentials: AdminCredentials): Promise<Offer> {
    const { engineVersion, extensions } = server.status ?? {}
    if (state.phase !== 'running') {
      await adminsOf(server).forget(server.metadata.name)
      return { engineVersion, extensions }
    }
    const way = adminsOf(server).open(server, { ...state.admin, ...credentials })
    if (!way) return NOTHING
    if (way.fresh || engineVersion === undefined || extensions === undefined) return hardened(server, way.opened)
    return { engineVersion, extensions }
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
    return metadata.annotations?.[annotations.forceDelete] === 'true' ? 0 : instances.countByIndex('server', metadata.name)
  }

  function held(server: DatabaseServer) {
    const { deletionTimestamp, generation } = server.metadata
    if (deletionTimestamp === undefined) return {}
    const message = `${tenantsToWaitFor(server)} instances are on it: it is deleted after them`
    const decision = ready(ServerReason.InstancesLeft, message)
    return {
      conditions: withCondition(server.status?.conditions, decision, { type: DELETION_HELD, generation, now: deps.now() }),
    }
  }

  async function report(
    server: DatabaseServer,
    state: ServerState,
    { decision, ...offer }: Offer & { readonly decision: Decision },
  ): Promise<void> {
    const address = state.phase === 'running' ? { host: state.host, port: state.port } : {}
    await say(DatabaseServer, server, decision, { ...address, ...offer, ...held(server) })
  }

  /** Reports why a server accepts no new tenants. Its present tenants stay connected. */
  async function unusable(server: DatabaseServer, reason: ServerReason, { message }: MooringError): Promise<Outcome> {
    const decision = notReady(reason, message)
    await say(DatabaseServer, server, decision)
    return { result: 'waiting', reason: decision.reason, requeueAfterMs: RETRY_MS }
  }

  async function bringUp(server: DatabaseServer, credentials: AdminCredentials): Promise<Outcome> {
    const state = await runtime.ensure(server, credentials)
    if (firstObservation.isUnknown(server, state))
      return { result: 'waiting', reason: ServerReason.Starting, requeueAfterMs: RETRY_MS }
    const offer = await offerOf(server, state, credentials)
    const decision = serverDecision(state, offer.engineVersion)
    await report(server, state, { decision, ...offer })
    if (state.phase === 'running') return { result: 'settled', reason: decision.reason }
    return { result: 'waiting', reason: decision.reason, requeueAfterMs: RETRY_MS }
  }

  return async function reconcileServer(key) {
    const server = servers.get(key)
    if (!server) return { result: 'settled', reason: 'Gone' }
    // A server with instances keeps serving: only then can their data be moved to another server.
    if (server.metadata.deletionTimestamp !== undefined && tenantsToWaitFor(server) === 0) return remove(server)
    try {
      return await bringUp(server, await secrets.of(server))
    } catch (error) {
      const reason = error instanceof MooringError ? UNUSABLE.get(error.code) : undefined
      if (!(error instanceof MooringError) || reason === undefined) throw error
      return unusable(server, reason, error)
    }
  }
}

interface PoolDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the index `server`: the DatabaseServer of an instance. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  /** Spare databases per server. */
  readonly size: number
}

/**
 * Creates the reconciler that keeps the warm pool of one server full, with one unit of work per call, so that other work waits only
 * shortly. Triggered when the server comes up and when an instance on it appears or is deleted.
 */
export function createPoolReconciler({ servers, instances, admins, size }: PoolDeps): (key: Key) => Promise<Outcome> {
  return async function reconcilePool(key) {
    const server = servers.get(key)
    const open = admins.get(key.name)
    if (server?.spec.tenancy === 'internal') return { result: 'settled', reason: 'NoTenants' }
    if (!server || !isReady(server) || server.metadata.deletionTimestamp !== undefined)
      return { result: 'waiting', reason: 'ServerNotReady' }
    // After a start of the operator, finding that a server is up changes no object, so no event triggers this reconcile.
    if (!open) return { result: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: RETRY_MS }
    const free = Math.max(0, server.spec.capacity - instances.countByIndex('server', key.name))
    const more = await open.admin.tidy(Math.min(size, free))
    return more ? { result: 'waiting', reason: 'Filling', requeueAfterMs: 1 } : { result: 'settled', reason: 'Full' }
  }
}

/** Time for a server to be observed after the operator's start, before a status from before the start is taken back. */
const GRACE_MS = 15_000

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
