import { DatabaseServer, ServerReason } from '../../crds/database-server.ts'
import { FINALIZER } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { type Verdict, withCondition } from '../../store/conditions.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins } from './admins.ts'
import { adminCredentials } from './credentials.ts'
import { serverVerdict } from './plan.ts'
import type { ServerRuntime, ServerState } from './runtime.ts'

export interface ServerDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  readonly runtime: ServerRuntime
  readonly admins: Admins
  readonly now: () => Date
}

/** How soon a server that is starting or failed is looked at again when nothing calls before. */
const LOOK_AGAIN_MS = 1_000

/** Brings one DatabaseServer up, or away: what its runtime says goes into its status, and its admin connections are kept open. */
export function createServerReconciler(deps: ServerDeps): (key: Key) => Promise<Outcome> {
  const { store, servers, runtime, admins } = deps

  async function remove(server: DatabaseServer): Promise<Outcome> {
    await admins.forget(server.metadata.name)
    if (!(await runtime.remove(server)))
      return { verdict: 'waiting', reason: ServerReason.Stopping, requeueAfterMs: LOOK_AGAIN_MS }
    const finalizers = (server.metadata.finalizers ?? []).filter((name) => name !== FINALIZER)
    await store.mergePatch(DatabaseServer, keyOf(server), { metadata: { finalizers } }, { uid: server.metadata.uid })
    return { verdict: 'settled', reason: ServerReason.Stopping }
  }

  async function versionOf(server: DatabaseServer, state: ServerState): Promise<string | undefined> {
    if (state.phase !== 'running') {
      await admins.forget(server.metadata.name)
      return server.status?.engineVersion
    }
    const credentials = await adminCredentials(store, server)
    const way = admins.open(server, { ...state.admin, ...credentials })
    if (!way) return undefined
    if (!way.fresh) return server.status?.engineVersion ?? way.opened.admin.version()
    await way.opened.admin.harden()
    return way.opened.admin.version()
  }

  async function report(
    server: DatabaseServer,
    state: ServerState,
    about: { verdict: Verdict; engineVersion: string | undefined },
  ): Promise<void> {
    const { generation, uid } = server.metadata
    const conditions = withCondition(server.status?.conditions, about.verdict, { type: 'Ready', generation, now: deps.now() })
    const address = state.phase === 'running' ? { host: state.host, port: state.port } : {}
    await store.patchStatus(
      DatabaseServer,
      keyOf(server),
      { ...address, engineVersion: about.engineVersion, observedGeneration: generation, conditions },
      { uid },
    )
  }

  return async function reconcileServer(key) {
    const server = servers.get(key)
    if (!server) return { verdict: 'settled', reason: 'Gone' }
    if (server.metadata.deletionTimestamp !== undefined) return remove(server)
    const state = await runtime.ensure(server, await adminCredentials(store, server))
    const engineVersion = await versionOf(server, state)
    const verdict = serverVerdict(state, engineVersion)
    await report(server, state, { verdict, engineVersion })
    if (state.phase === 'running') return { verdict: 'settled', reason: verdict.reason }
    return { verdict: 'waiting', reason: verdict.reason, requeueAfterMs: LOOK_AGAIN_MS }
  }
}
