import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { SHARED_NAMESPACE } from '../crds/names.ts'
import type { Kind } from '../crds/kind.ts'
import { isClaimed } from '../crds/shared-instance.ts'
import type { Cache } from '../store/cache.ts'
import { keyOf, keyToString } from '../store/key-string.ts'
import type { Key, Store } from '../store/port.ts'
import type { OperatorCaches } from './caches.ts'
import { createUnseenChanges, type UnseenChangesDeps } from './audit/unseen-changes.ts'
import { createCatalogControllers } from './catalog/controllers.ts'
import type { SessionBounds } from './engines/engine.ts'
import { tellFailures } from './events/condition-failures.ts'
import { createLogEvents, type Events } from './events/events.ts'
import { toldBy } from './events/reconcile-failures.ts'
import { createFleetReconciler } from './fleet/reconciler.ts'
import { createOperatorMetrics } from './metrics.ts'
import { createNamespaceReconciler } from './namespace/reconciler.ts'
import { namespaceWatches } from './namespace/watches.ts'
import { createQuota } from './quota/quota.ts'
import { roomIn } from './quota/room.ts'
import { createReporter } from './reporter.ts'
import { createController, type ControllerDeps } from './runtime/controller.ts'
import { createControllerMetrics } from './runtime/metrics.ts'
import { changesOf, eventsOf, laterThan, objectsOf } from './runtime/source.ts'
import { createAdmins } from './server/admins.ts'
import { createPoolReconciler } from './server/pool.ts'
import { createServerReconciler } from './server/reconciler.ts'
import type { ServerRuntime } from './server/runtime.ts'
import { isSettled, waitingFor } from './shared-instance/indexes.ts'
import { createPlaces } from './shared-instance/places.ts'
import { createInstanceReconciler } from './shared-instance/reconciler.ts'
import { createSuspicions } from './shared-instance/suspicions.ts'
import { createCertificateSweep } from './tunnel/certificate-sweep.ts'
import { createTunnelControllers, type TunnelControllersDeps } from './tunnel/controllers.ts'
import { createPresence, type PresenceDeps } from './tunnel/presence.ts'
import { createTransactionIdAlarm } from './watchdog/transaction-ids.ts'
import { createWatchdog } from './watchdog/watchdog.ts'

/** Connections that one tenant may hold; the servers' settings allow for this many each. */
const CONNECTIONS_PER_TENANT = 12
/** After a claim, before its spare is replaced: a copy of a database keeps engine and disk busy, and the answer is on its way. */
const REFILL_AFTER_MS = 100

export interface OperatorDeps {
  readonly store: Store
  readonly caches: OperatorCaches
  readonly runtime: ServerRuntime
  readonly registry: Registry
  readonly log: Logger
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  /** File of that CA, as callers are told in a connection string. */
  readonly caFile: string
  readonly settings: OperatorSettings
  /** Whether the components run under service accounts, which need a RoleBinding of their own in each tenant namespace. */
  readonly serviceAccounts: boolean
  /** Where failures are told beside the log. */
  readonly events?: Events | undefined
  /** What tunnels need; absent where there are no edges. */
  readonly tunnels?: TunnelsDeps | undefined
  /** Whether this process leads at this very moment; always, when absent. Asked before each step in an engine. */
  readonly leads?: (() => boolean) | undefined
}

export type TunnelsDeps = Pick<TunnelControllersDeps, 'endpoints' | 'tunnels' | 'tunnelPasswords' | 'issuers' | 'runtime'> & {
  readonly journal: PresenceDeps['journal'] & UnseenChangesDeps['journal']
  /** Of the audit log. */
  readonly digest: UnseenChangesDeps['digest']
}

export interface OperatorSettings {
  /** Spare databases on a server. */
  readonly warmPool: number
  /** Shared instances on a server. */
  readonly capacity: number
  /** Objects in a namespace, by kind. */
  readonly quotas: { readonly instances: number; readonly tunnels: number }
  /** Bounds of tenants' sessions, and of their databases. */
  readonly limits: SessionBounds
  readonly every: { readonly sessionsMs: number; readonly sweepMs: number }
}

export interface Operator {
  /** Ends when `signal` aborts and what was under way is done. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when `run` has found the first database server up. */
  readonly firstServer: Promise<unknown>
}

/** Wires the operator's controllers. */
export function createOperator(deps: OperatorDeps): Operator {
  const { store, caches, runtime, log, settings } = deps
  const { instances, servers, regions } = caches
  const now = () => new Date()
  const events = deps.events ?? createLogEvents(log)
  const report = createReporter({ store, now })
  const admins = createAdmins()
  const ownAdmins = createAdmins()
  const suspicions = createSuspicions()
  const places = createPlaces({ servers, instances })
  const quota = createQuota({ cache: instances, max: settings.quotas.instances, hasBegun: isClaimed })
  const { claimed } = createOperatorMetrics({ registry: deps.registry, instances, tunnels: deps.tunnels?.tunnels, admins })
  const watchdog = createWatchdog({
    ...{ store, instances, admins, suspicions, log, ca: deps.ca },
    limits: settings.limits,
    every: settings.every,
    onTransactionIds: createTransactionIdAlarm({ store, servers, registry: deps.registry, now }),
  })
  const metrics = createControllerMetrics(deps.registry)
  const controller = (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) =>
    createController({ ...about, log, ...metrics })

  const toldOf = (cache: Cache<Kind>) => deps.events && toldBy(deps.events, cache)

  const onServer = (name: string) => instances.byIndex('server', name).map(keyOf)
  const allRegions = () => regions.list().map(keyOf)
  const serverKey = (name: string): Key => ({ namespace: SHARED_NAMESPACE, name })

  /** Who lives on a server that changed, and who waits for one like it. */
  function concernedByServer(key: Key): readonly Key[] {
    const server = servers.get(key)
    const waiting = server ? instances.byIndex('waiting', waitingFor(server.spec.region, server.spec.motor)) : []
    return [...onServer(key.name), ...waiting.map(keyOf)]
  }

  /** Servers that wait for their last instance to go. */
  const goingServers = () =>
    servers
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(keyOf)

  function isUnsettled(key: Key): boolean {
    const instance = instances.get(key)
    return instance !== undefined && !isSettled(instance)
  }

  function waitingIn({ name }: Key): readonly Key[] {
    const region = regions.get({ name })
    return (region?.spec.motors ?? []).flatMap(({ id }) =>
      instances.byIndex('waiting', waitingFor(region?.spec.id ?? '', id)).map(keyOf),
    )
  }

  function poolOf(key: Key): readonly Key[] {
    const instance = instances.get(key)
    // Of one that is gone nobody knows any more where it was.
    if (!instance) return servers.list().map(keyOf)
    const server = instance.status?.serverRef?.name
    // It takes a spare soon; until then a look at the pools only keeps the servers from its claim.
    return server === undefined ? [] : [serverKey(server)]
  }

  const controllers = [
    ...createCatalogControllers({ ...caches, report, now, controller }),
    ...(deps.tunnels
      ? createTunnelControllers({
          ...deps.tunnels,
          max: settings.quotas.tunnels,
          store,
          regions,
          report,
          now,
          controller,
          toldOf,
        })
      : []),
    controller({
      name: 'namespace',
      concurrency: 2,
      reconcile: createNamespaceReconciler({ ...caches, store, report, serviceAccounts: deps.serviceAccounts }),
      sources: namespaceWatches(caches),
    }),
    controller({
      name: 'fleet',
      concurrency: 1,
      reconcile: createFleetReconciler({ store, regions, servers, instances, places, quota, now, capacity: settings.capacity }),
      sources: [objectsOf(regions), changesOf(servers, allRegions), changesOf(instances, allRegions)],
    }),
    controller({
      name: 'server',
      concurrency: 4,
      onFailure: toldOf(servers),
      reconcile: createServerReconciler({ store, servers, instances, runtime, admins, ownAdmins, now }),
      sources: [
        objectsOf(servers),
        changesOf(instances, goingServers),
        eventsOf((enqueue) => onRuntimeChange(runtime, (name) => enqueue(serverKey(name)))),
      ],
    }),
    controller({
      name: 'pool',
      concurrency: 2,
      reconcile: createPoolReconciler({ servers, instances, admins, size: settings.warmPool }),
      sources: [objectsOf(servers), laterThan(changesOf(instances, poolOf), REFILL_AFTER_MS)],
    }),
    controller({
      name: 'admission',
      concurrency: 2,
      onFailure: toldOf(servers),
      async reconcile({ name }) {
        await runtime.tenantsChanged?.(name)
        return { verdict: 'settled', reason: 'TenantsAdmitted' }
      },
      sources: [changesOf(instances, poolOf)],
    }),
    controller({
      name: 'shared-instance',
      concurrency: 16,
      onFailure: toldOf(instances),
      reconcile: createInstanceReconciler({
        ...{ store, instances, servers, regions, admins, places, quota, suspicions, now, report },
        limits: { connections: CONNECTIONS_PER_TENANT },
        ca: deps.ca,
        caFile: deps.caFile,
        mayAct: deps.leads,
        onClaim: claimed,
      }),
      sources: [
        objectsOf(instances),
        roomIn(instances, quota),
        changesOf(servers, concernedByServer),
        changesOf(instances, (key) => instances.byIndex('template', keyToString(key)).map(keyOf)),
        changesOf(regions, waitingIn),
        // Who is gone has left a place.
        changesOf(instances, (key) => (instances.get(key) ? [] : allRegions().flatMap(waitingIn))),
        eventsOf((enqueue) => watchdog.onSuspicion(enqueue)),
        // After a failover its server is ready by its status before there is a way in: what was tried too soon need not wait its back-off out.
        eventsOf((enqueue) => admins.onOpen((name) => concernedByServer(serverKey(name)).filter(isUnsettled).forEach(enqueue))),
      ],
    }),
  ]

  const unable = (what: string) => (error: unknown) => log.warn({ err: error }, `${what} were not looked at`)
  const presence = deps.tunnels && createPresence({ ...deps.tunnels, store, onError: unable('the connected tunnels') })
  const certificates =
    deps.tunnels && createCertificateSweep({ ...deps.tunnels, store, report, now, onError: unable('certificates of tunnels') })

  const unseen = deps.tunnels && auditFor({ ...deps, tunnels: deps.tunnels }, now)

  return {
    firstServer: admins.firstOpen,
    async run(signal) {
      const told = [instances, servers, caches.tenantNamespaces, deps.tunnels?.tunnels, deps.tunnels?.endpoints]
      const telling = told
        .filter((cache) => cache !== undefined)
        .map((cache) => whenSynced(cache, () => tellFailures(cache, events)))
      await Promise.all([
        ...controllers.map((each) => each.run(signal)),
        watchdog.run(signal),
        presence?.run(signal),
        certificates?.run(signal),
        unseen?.run(signal),
      ])
      for (const stop of telling) stop()
      await admins[Symbol.asyncDispose]()
      await ownAdmins[Symbol.asyncDispose]()
    },
  }
}

/** The audit log is part of the journal, which is there where tunnels are. */
function auditFor({ caches, tunnels, log, registry }: OperatorDeps & { readonly tunnels: TunnelsDeps }, now: () => Date) {
  const audited = [caches.instances, caches.apiTokens, tunnels.tunnels, tunnels.tunnelPasswords]
  const { journal, digest } = tunnels
  return createUnseenChanges({ caches: audited, namespaces: caches.namespaces, journal, digest, log, registry, now })
}

/** Starts once the cache has synced, unless it was stopped by then. Returns how to stop. */
function whenSynced(cache: Cache<Kind>, start: () => () => void): () => void {
  let stop: (() => void) | undefined
  let stopped = false
  void cache.synced().then(() => {
    if (!stopped) stop = start()
  })
  return () => {
    stopped = true
    stop?.()
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
