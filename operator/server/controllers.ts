import type { Namespace } from '../../crds/core.ts'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { type Key, keyOf } from '../../store/port.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { changesOf, eventsOf, laterThan, objectsOf } from '../runtime/source.ts'
import type { Discarded } from './discarded.ts'
import { createPoolReconciler } from './pool-reconciler.ts'
import { createServerReconciler, type ServerDeps } from './reconciler.ts'
import type { ServerRuntime } from './runtime.ts'

export interface ServerControllerDeps extends ServerDeps {
  /** Spare databases per shared server. */
  readonly warmPool: number
  readonly discarded: Discarded
  /** Namespaces, whose deletion `isNamespaceGoing` shows. */
  readonly namespaces?: Cache<typeof Namespace> | undefined
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller
  readonly onFailure: ControllerDeps['onFailure']
  /** Returns the servers whose pool depends on an instance. */
  readonly serversOf: (instance: Key) => readonly Key[]
}

/** Delay between a claim and the replacement of its spare: copying a database loads engine and disk while the claim still needs them. */
const REFILL_AFTER_MS = 100

/** Maximum number of dedicated servers that are reconciled at the same time. A reconcile spends most of its time in an engine. */
const DEDICATED_CONCURRENCY = 32

type Reconcile = ControllerDeps['reconcile']

interface TenancyShare {
  /** Returns the name of the controller of this share. */
  readonly name: (base: string) => string
  readonly concurrency: number
  /** Restricts a reconcile to the servers of this share. */
  readonly only: (reconcile: Reconcile) => Reconcile
}

/**
 * Creates one controller for dedicated servers and one for all others, so that dedicated servers that hang, which their tenants can bring
 * about, do not occupy the workers of shared ones.
 */
function forEachTenancy(
  { servers, concurrency }: { readonly servers: Cache<typeof DatabaseServer>; readonly concurrency: number },
  create: (share: TenancyShare) => Controller,
): readonly Controller[] {
  const only =
    (isDedicated: boolean) =>
    (reconcile: Reconcile): Reconcile =>
    async (key, signal) =>
      (servers.get(key)?.spec.tenancy === 'dedicated') === isDedicated
        ? reconcile(key, signal)
        : { result: 'settled', reason: 'OtherTenancy' }
  return [
    create({ name: (base) => base, concurrency, only: only(false) }),
    create({ name: (base) => `dedicated-${base}`, concurrency: DEDICATED_CONCURRENCY, only: only(true) }),
  ]
}

/** Creates the controllers of servers and of their pools. */
export function createServerControllers(deps: ServerControllerDeps): readonly Controller[] {
  const { servers, instances, databases, runtime, admins, discarded, controller, onFailure } = deps
  /** Servers that are deleted when their last instance or database is. */
  const goingServers = () =>
    servers
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(keyOf)
  const reconcileServer = createServerReconciler(deps)
  const reconcilePool = createPoolReconciler({ servers, instances, admins, discarded, size: deps.warmPool })
  return [
    ...forEachTenancy({ servers, concurrency: 4 }, ({ name, concurrency, only }) =>
      controller({
        name: name('server'),
        concurrency,
        onFailure,
        reconcile: only(reconcileServer),
        sources: [
          objectsOf(servers),
          changesOf(instances, goingServers),
          ...(databases ? [changesOf(databases, goingServers)] : []),
          ...(deps.namespaces ? [changesOf(deps.namespaces, goingServers)] : []),
          eventsOf((enqueue) => onRuntimeChange(runtime, (server) => enqueue({ namespace: SHARED_NAMESPACE, name: server }))),
        ],
      }),
    ),
    ...forEachTenancy({ servers, concurrency: 2 }, ({ name, concurrency, only }) =>
      controller({
        name: name('pool'),
        concurrency,
        reconcile: only(reconcilePool),
        sources: [objectsOf(servers), laterThan(changesOf(instances, deps.serversOf), REFILL_AFTER_MS)],
      }),
    ),
  ]
}

/** Subscribes to the runtime, which has no way to unsubscribe; after the stop the handler does nothing. */
function onRuntimeChange(runtime: ServerRuntime, handler: (name: string) => void): () => void {
  let active = true
  runtime.onChange((name) => {
    if (active) handler(name)
  })
  return () => {
    active = false
  }
}
