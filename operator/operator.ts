import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { SHARED_NAMESPACE } from '../crds/names.ts'
import { keyOf } from '../store/key-string.ts'
import type { Key, Store } from '../store/port.ts'
import type { OperatorCaches } from './caches.ts'
import { createFleetReconciler } from './fleet/reconciler.ts'
import { createOperatorMetrics } from './metrics.ts'
import { createNamespaceReconciler } from './namespace/reconciler.ts'
import { createController, type ControllerDeps } from './runtime/controller.ts'
import { createControllerMetrics } from './runtime/metrics.ts'
import { changesOf, eventsOf, objectsOf } from './runtime/source.ts'
import { createAdmins } from './server/admins.ts'
import { createPoolReconciler } from './server/pool.ts'
import { createServerReconciler } from './server/reconciler.ts'
import type { ServerRuntime } from './server/runtime.ts'
import { waitingFor } from './shared-instance/indexes.ts'
import { createPlaces } from './shared-instance/places.ts'
import { createInstanceReconciler } from './shared-instance/reconciler.ts'
import { createSuspicions } from './shared-instance/suspicions.ts'
import { createWatchdog } from './watchdog/watchdog.ts'

/** Connections that one tenant may hold; the servers' settings allow for this many each. */
const CONNECTIONS_PER_TENANT = 12

export interface OperatorDeps {
  readonly store: Store
  readonly caches: OperatorCaches
  readonly runtime: ServerRuntime
  readonly registry: Registry
  readonly log: Logger
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  readonly settings: OperatorSettings
}

export interface OperatorSettings {
  /** Spare databases on a server. */
  readonly warmPool: number
  /** Shared instances on a server. */
  readonly capacity: number
  readonly statementMs: number
  readonly sizeBytes: number
  readonly every: { readonly statementsMs: number; readonly sweepMs: number }
}

/** Wires the operator's controllers. `run` ends when `signal` aborts and what was under way is done. */
export function createOperator(deps: OperatorDeps): { readonly run: (signal: AbortSignal) => Promise<void> } {
  const { store, caches, runtime, log, settings } = deps
  const { instances, servers, regions, namespaces, roleBindings } = caches
  const now = () => new Date()
  const admins = createAdmins()
  const suspicions = createSuspicions()
  const places = createPlaces({ servers, instances })
  const { claimed } = createOperatorMetrics({ registry: deps.registry, instances, admins })
  const watchdog = createWatchdog({
    ...{ store, instances, admins, suspicions, log },
    limits: { statementMs: settings.statementMs, sizeBytes: settings.sizeBytes },
    every: settings.every,
  })
  const metrics = createControllerMetrics(deps.registry)
  const controller = (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources'>) =>
    createController({ ...about, log, ...metrics })

  const onServer = (name: string) => instances.byIndex('server', name).map(keyOf)
  const allRegions = () => regions.list().map(keyOf)
  const serverKey = (name: string): Key => ({ namespace: SHARED_NAMESPACE, name })

  /** Who lives on a server that changed, and who waits for one like it. */
  function concernedByServer(key: Key): readonly Key[] {
    const server = servers.get(key)
    const waiting = server ? instances.byIndex('waiting', waitingFor(server.spec.region, server.spec.motor)) : []
    return [...onServer(key.name), ...waiting.map(keyOf)]
  }

  function waitingIn({ name }: Key): readonly Key[] {
    const region = regions.get({ name })
    return (region?.spec.motors ?? []).flatMap(({ id }) =>
      instances.byIndex('waiting', waitingFor(region?.spec.id ?? '', id)).map(keyOf),
    )
  }

  function poolOf(key: Key): readonly Key[] {
    const server = instances.get(key)?.status?.serverRef?.name
    // Of one that is gone nobody knows any more where it was.
    return server === undefined ? servers.list().map(keyOf) : [serverKey(server)]
  }

  const controllers = [
    controller({
      name: 'namespace',
      concurrency: 2,
      reconcile: createNamespaceReconciler({ ...caches, store }),
      sources: [
        objectsOf(namespaces),
        changesOf(roleBindings, ({ namespace }) => (namespace === undefined ? [] : [{ name: namespace }])),
      ],
    }),
    controller({
      name: 'fleet',
      concurrency: 1,
      reconcile: createFleetReconciler({ store, regions, servers, instances, places, capacity: settings.capacity }),
      sources: [objectsOf(regions), changesOf(servers, allRegions), changesOf(instances, allRegions)],
    }),
    controller({
      name: 'server',
      concurrency: 4,
      reconcile: createServerReconciler({ store, servers, runtime, admins, now }),
      sources: [objectsOf(servers), eventsOf((enqueue) => onRuntimeChange(runtime, (name) => enqueue(serverKey(name))))],
    }),
    controller({
      name: 'pool',
      concurrency: 1,
      reconcile: createPoolReconciler({ servers, instances, admins, size: settings.warmPool }),
      sources: [objectsOf(servers), changesOf(instances, poolOf)],
    }),
    controller({
      name: 'shared-instance',
      concurrency: 8,
      reconcile: createInstanceReconciler({
        ...{ store, instances, servers, regions, admins, places, suspicions, now },
        limits: { connections: CONNECTIONS_PER_TENANT },
        ca: deps.ca,
        onClaim: claimed,
      }),
      sources: [
        objectsOf(instances),
        changesOf(servers, concernedByServer),
        changesOf(regions, waitingIn),
        eventsOf((enqueue) => watchdog.onSuspicion(enqueue)),
      ],
    }),
  ]

  return {
    async run(signal) {
      await Promise.all([...controllers.map((each) => each.run(signal)), watchdog.run(signal)])
      await admins[Symbol.asyncDispose]()
    },
  }
}

/** The runtime keeps its handlers for good; after the stop they do nothing. */
function onRuntimeChange(runtime: ServerRuntime, handler: (name: string) => void): () => void {
  let active = true
  runtime.onChange((name) => {
    if (active) handler(name)
  })
  return () => {
    active = false
  }
}
