import { DatabaseServer, ServerReason } from '../../crds/database-server.ts'
import { FINALIZER } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import type { Verdict } from '../../store/conditions.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import { createReporter } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins, OpenServer } from './admins.ts'
import { adminCredentials } from './credentials.ts'
import { createFirstLook } from './first-look.ts'
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
  const say = createReporter(deps)
  const isUnknown = createFirstLook(deps.now)

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
    return hardened(server, way.opened)
  }

  /** A way in that is kept is one to a hardened server. */
  async function hardened(server: DatabaseServer, { admin }: OpenServer): Promise<string> {
    try {
      await admin.harden()
      return await admin.version()
    } catch (error) {
      await admins.forget(server.metadata.name)
      throw error
    }
  }

  async function report(
    server: DatabaseServer,
    state: ServerState,
    about: { verdict: Verdict; engineVersion: string | undefined },
  ): Promise<void> {
    const address = state.phase === 'running' ? { host: state.host, port: state.port } : {}
    await say(DatabaseServer, server, about.verdict, { ...address, engineVersion: about.engineVersion })
  }

  return async function reconcileServer(key) {
    const server = servers.get(key)
    if (!server) return { verdict: 'settled', reason: 'Gone' }
    if (server.metadata.deletionTimestamp !== undefined) return remove(server)
    const state = await runtime.ensure(server, await adminCredentials(store, server))
    if (isUnknown(server, state)) return { verdict: 'waiting', reason: ServerReason.Starting, requeueAfterMs: LOOK_AGAIN_MS }
    const engineVersion = await versionOf(server, state)
    const verdict = serverVerdict(state, engineVersion)
    await report(server, state, { verdict, engineVersion })
    if (state.phase === 'running') return { verdict: 'settled', reason: verdict.reason }
    return { verdict: 'waiting', reason: verdict.reason, requeueAfterMs: LOOK_AGAIN_MS }
  }
}
