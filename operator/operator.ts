import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { SHARED_NAMESPACE } from '../crds/names.ts'
import type { Kind } from '../crds/kind.ts'
import { isClaimed, SharedInstance } from '../crds/shared-instance.ts'
import type { DatabaseJournal } from '../journal/databases.ts'
import type { WebhookJournal } from '../journal/webhooks.ts'
import type { AddressGuard } from '../shared/outside-addresses.ts'
import type { WebhookSecrets } from '../shared/webhook-secrets.ts'
import type { Cache } from '../store/cache.ts'
import { keyOf, keyToString, type Key, type Store } from '../store/port.ts'
import type { OperatorCaches } from './caches.ts'
import { createUnseenChanges, type UnseenChangesDeps } from './audit/unseen-changes.ts'
import { createCatalogControllers } from './catalog/controllers.ts'
import type { SessionBounds } from './engines/engine.ts'
import { hasServer } from './dedicated-database/indexes.ts'
import { type BackupsDeps, createArchiveControllers } from './database-archive/controller.ts'
import { createDatabaseControllers } from './dedicated-database/controllers.ts'
import { reportFailuresOnceSynced, reporterOf } from './events/failures.ts'
import { createLogEvents, type Events } from './events/events.ts'
import { createFleetReconciler, type FleetDeps } from './fleet/reconciler.ts'
import { createOperatorMetrics } from './metrics.ts'
import { createMetering } from './metering/metering.ts'
import { createNamespaceReconciler } from './namespace/reconciler.ts'
import { createTenancy } from './namespace/tenancy.ts'
import { namespaceWatches } from './namespace/watches.ts'
import { admissibleIn, createQuota } from './quota/quota.ts'
import { createReporter } from './reporter.ts'
import { createController, type ControllerDeps, createControllerMetrics } from './runtime/controller.ts'
import { changesOf, eventsOf, objectsOf } from './runtime/source.ts'
import { createAdmins } from './server/admins.ts'
import { createServerControllers } from './server/controllers.ts'
import { createDiscarded } from './server/discarded.ts'
import type { ServerRuntime } from './server/runtime.ts'
import { isSettled, waitingFor } from './shared-instance/indexes.ts'
import { createSlots, createSuspicions } from './shared-instance/slots.ts'
import { createInstanceReconciler } from './shared-instance/reconciler.ts'
import { createCertificateSweep } from './tunnel/certificate-sweep.ts'
import { createTunnelControllers, type TunnelControllersDeps } from './tunnel/controllers.ts'
import { createPresence, type PresenceDeps } from './tunnel/presence.ts'
import { createMemoryAlarm } from './watchdog/memory-alarm.ts'
import { createRestarts } from './watchdog/restarts.ts'
import { createTransactionIdAlarm } from './watchdog/server-checks.ts'
import { createWatchdog } from './watchdog/watchdog.ts'
import { createWebhookController } from './webhooks/controllers.ts'
import { createDeliverer, type DelivererDeps } from './webhooks/deliverer.ts'
import { createLastEvents, type LastEventsDeps } from './webhooks/last-events.ts'

/** Connections that one tenant may hold; the servers' settings reserve this many for each. */
const CONNECTIONS_PER_TENANT = 12

export interface OperatorDeps {
  readonly store: Store
  readonly caches: OperatorCaches
  readonly runtime: ServerRuntime
  readonly registry: Registry
  readonly log: Logger
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  /** File name of that CA in connection strings. */
  readonly caFile: string
  readonly settings: OperatorSettings
  /** Whether the components run under service accounts, which need a RoleBinding in each tenant namespace. */
  readonly serviceAccounts: boolean
  /** Sink of failures. Default: the log. */
  readonly events?: Events | undefined
  /** Dependencies of tunnels; absent in deployments without edges. */
  readonly tunnels?: TunnelsDeps | undefined
  /** Repository of backups, and grants of restores; absent in installations without one. */
  readonly backups?: BackupsDeps | undefined
  /** Whether this process is leader now; called before each step in an engine. Default: always. */
  readonly isLeader?: (() => boolean) | undefined
}

export type TunnelsDeps = Pick<TunnelControllersDeps, 'endpoints' | 'tunnels' | 'tunnelPasswords' | 'issuers' | 'runtime'> & {
  readonly journal: PresenceDeps['journal'] &
    LastEventsDeps['journal'] &
    UnseenChangesDeps['journal'] &
    WebhookJournal &
    DatabaseJournal
  /** Webhooks, with the indexes of webhooks/indexes.ts. */
  readonly tunnelWebhooks: DelivererDeps['webhooks']
  readonly webhookSecrets: WebhookSecrets
  /** Decides which addresses the receivers of webhooks may have. */
  readonly addressGuard: AddressGuard
  /** Digest for the audit log. */
  readonly digest: UnseenChangesDeps['digest']
}

export interface OperatorSettings {
  /** Spare databases per server. */
  readonly warmPool: number
  /** Returns the maximum number of shared instances on a server of a motor. */
  readonly capacityOf: FleetDeps['capacityOf']
  /** Maximum number of objects in a namespace, by kind. */
  readonly quotas: { readonly instances: number; readonly databases: number; readonly tunnels: number }
  /** Limits of tenants' sessions and databases. */
  readonly limits: SessionBounds
  readonly every: { readonly sessionsMs: number; readonly sweepMs: number }
}

export interface Operator {
  /** Runs the controllers. Resolves when `signal` has aborted and the work under way is done. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the first database server is known to be up. */
  readonly firstServer: Promise<unknown>
}

/** Creates the operator's controllers and their sources. */
export function createOperator(deps: OperatorDeps): Operator {
  const { store, caches, runtime, log, settings } = deps
  const { instances, databases, servers, regions } = caches
  const now = () => new Date()
  const events = deps.events ?? createLogEvents(log)
  const report = createReporter({ store, now })
  const admins = createAdmins()
  const ownAdmins = createAdmins()
  const suspicions = createSuspicions()
  const discarded = createDiscarded({ servers, registry: deps.registry })
  const slots = createSlots({ servers, instances, discarded })
  const quota = createQuota({
    cache: instances,
    max: settings.quotas.instances,
    hasBegun: isClaimed,
    lingering: (namespace) => discarded.countIn(namespace),
  })
  const tenancy = createTenancy({ ...caches, store })
  const databaseQuota = createQuota({ cache: databases, max: settings.quotas.databases, hasBegun: hasServer })
  const { claimed } = createOperatorMetrics({
    registry: deps.registry,
    instances,
    databases,
    servers,
    admins,
    tunnels: deps.tunnels,
  })
  const watchdog = createWatchdog({
    store,
    instances,
    databases,
    admins,
    suspicions,
    log,
    events,
    ca: deps.ca,
    limits: settings.limits,
    every: settings.every,
    discarded,
    restarts: createRestarts({ store, servers, instances, runtime, events, log, registry: deps.registry, now }),
    onTransactionIds: createTransactionIdAlarm({ store, servers, registry: deps.registry, now }),
    onOutOfMemory: createMemoryAlarm({ store, servers, events, now }),
  })
  const metrics = createControllerMetrics(deps.registry)
  const controller = (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) =>
    createController({ ...about, log, ...metrics })

  const failureReporter = (cache: Cache<Kind>) => deps.events && reporterOf(deps.events, cache)

  const onServer = (name: string) => instances.byIndex('server', name).map(keyOf)
  const allRegions = () => regions.list().map(keyOf)
  const serverKey = (name: string): Key => ({ namespace: SHARED_NAMESPACE, name })

  /** Instances on a server that changed, and instances that wait for a server like it. */
  function concernedByServer(key: Key): readonly Key[] {
    const server = servers.get(key)
    const waiting = server ? instances.byIndex('waiting', waitingFor(server.spec.region, server.spec.motor)) : []
    return [...onServer(key.name), ...waiting.map(keyOf)]
  }

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

  /** Instances that may be admitted now, in all namespaces. */
  const waitingForQuota = () => caches.tenantNamespaces.list().flatMap(({ metadata }) => quota.next(metadata.name))

  const sharedNamespace = () => caches.namespaces.get({ name: SHARED_NAMESPACE })?.metadata
  const ofNamespaces = {
    namespaces: caches.namespaces,
    isNamespaceGoing: () => sharedNamespace()?.deletionTimestamp !== undefined,
  }

  const sharedServers = () =>
    servers
      .list()
      .filter(({ spec }) => spec.tenancy === 'shared')
      .map(keyOf)

  function poolOf(key: Key): readonly Key[] {
    const instance = instances.get(key)
    // The server of a deleted instance is unknown.
    if (!instance) return sharedServers()
    const server = instance.status?.serverRef?.name
    // It takes a spare soon; reconciling the pools before that would only delay its claim.
    return server === undefined ? [] : [serverKey(server)]
  }

  const metering = createMetering({ ...deps, databases, archives: caches.archives, admins, now })

  const webhooks = deps.tunnels && {
    store,
    registry: deps.registry,
    log,
    now,
    mayAct: deps.isLeader,
    outbox: deps.tunnels.journal.webhooks,
    tunnels: deps.tunnels.tunnels,
    webhooks: deps.tunnels.tunnelWebhooks,
    secrets: deps.tunnels.webhookSecrets,
    guard: deps.tunnels.addressGuard,
  }

  const controllers = [
    ...createCatalogControllers({ ...caches, ...deps.tunnels, report, now, controller }),
    ...(deps.tunnels && webhooks
      ? [
          ...createTunnelControllers({
            ...deps.tunnels,
            max: settings.quotas.tunnels,
            isShared: () => caches.organizations.count() > 1,
            lastEvents: createLastEvents({ ...webhooks, journal: deps.tunnels.journal }),
            store,
            regions,
            databases,
            tenancy,
            report,
            now,
            controller,
            failureReporter,
          }),
          createWebhookController({ ...webhooks, report, controller, onFailure: failureReporter(webhooks.webhooks) }),
        ]
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
      reconcile: createFleetReconciler({
        store,
        regions,
        servers,
        instances,
        slots,
        quota,
        now,
        capacityOf: settings.capacityOf,
        hasNamespace: () => sharedNamespace() !== undefined && !ofNamespaces.isNamespaceGoing(),
      }),
      sources: [
        objectsOf(regions),
        changesOf(servers, allRegions),
        changesOf(instances, allRegions),
        changesOf(caches.namespaces, ({ name }) => (name === SHARED_NAMESPACE ? allRegions() : [])),
      ],
    }),
    ...createServerControllers({
      store,
      servers,
      instances,
      databases,
      runtime,
      admins,
      ownAdmins,
      discarded,
      now,
      controller,
      ...ofNamespaces,
      warmPool: settings.warmPool,
      onFailure: failureReporter(servers),
      serversOf: poolOf,
    }),
    ...createDatabaseControllers({
      ...caches,
      store,
      log,
      admins,
      suspicions,
      watchdog,
      report,
      controller,
      events,
      quota: databaseQuota,
      ca: deps.ca,
      caFile: deps.caFile,
      mayAct: deps.isLeader,
      onFailure: failureReporter(databases),
      now,
      edges: deps.tunnels,
      finishUsage: metering.finishUsage,
      backups: deps.backups,
      usageRecordedUntil: metering.usageRecordedUntil,
    }),
    ...createArchiveControllers(deps.backups, {
      ...ofNamespaces,
      store,
      archives: caches.archives,
      databases,
      report,
      now,
      log,
      controller,
      onFailure: failureReporter(caches.archives),
    }),
    controller({
      name: 'admission',
      concurrency: 2,
      onFailure: failureReporter(servers),
      async reconcile({ name }) {
        await runtime.tenantsChanged?.(name)
        return { result: 'settled', reason: 'TenantsAdmitted' }
      },
      sources: [changesOf(instances, poolOf)],
    }),
    controller({
      name: 'shared-instance',
      concurrency: 16,
      onFailure: failureReporter(instances),
      reconcile: createInstanceReconciler({
        store,
        instances,
        servers,
        regions,
        admins,
        slots,
        quota,
        suspicions,
        tenancy,
        now,
        report,
        events,
        limits: { connections: CONNECTIONS_PER_TENANT },
        ca: deps.ca,
        caFile: deps.caFile,
        mayAct: deps.isLeader,
        onClaim: claimed,
      }),
      sources: [
        objectsOf(instances),
        admissibleIn(instances, quota),
        ...tenancy.changes((namespace) => instances.list({ namespace }).map(keyOf)),
        eventsOf((enqueue) => discarded.onRemoval(() => waitingForQuota().forEach(enqueue))),
        changesOf(servers, concernedByServer),
        changesOf(instances, (key) => instances.byIndex('template', keyToString(key)).map(keyOf)),
        changesOf(regions, waitingIn),
        // A deleted instance has freed a slot.
        changesOf(instances, (key) => (instances.get(key) ? [] : allRegions().flatMap(waitingIn))),
        eventsOf((enqueue) => watchdog.onSuspicion(SharedInstance, enqueue)),
        // After a failover a server's status is ready before its admin connection is: instances that failed meanwhile are reconciled at
        // once.
        eventsOf((enqueue) => admins.onOpen((name) => concernedByServer(serverKey(name)).filter(isUnsettled).forEach(enqueue))),
      ],
    }),
  ]

  const unable = (what: string) => (error: unknown) => log.warn({ err: error }, `${what} were not checked`)
  const presence = deps.tunnels && createPresence({ ...deps.tunnels, store, onError: unable('the connected tunnels') })
  const certificates =
    deps.tunnels && createCertificateSweep({ ...deps.tunnels, store, report, now, onError: unable('certificates of tunnels') })

  const deliverer = webhooks && createDeliverer(webhooks)
  const unseen = deps.tunnels && auditFor({ ...deps, tunnels: deps.tunnels }, now)

  return {
    firstServer: admins.firstOpen,
    async run(signal) {
      const { tunnels, endpoints, tunnelWebhooks, tunnelPasswords } = deps.tunnels ?? {}
      const { tenantNamespaces, plans, archives } = caches
      const reported = [
        ...[instances, databases, servers, archives, regions, plans, tenantNamespaces],
        ...[tunnels, endpoints, tunnelWebhooks, tunnelPasswords],
      ]
      const reporting = reported.filter((cache) => cache !== undefined).map((cache) => reportFailuresOnceSynced(cache, events))
      await Promise.all([
        ...controllers.map((each) => each.run(signal)),
        watchdog.run(signal),
        presence?.run(signal),
        certificates?.run(signal),
        unseen?.run(signal),
        deliverer?.run(signal),
        metering.run(signal),
      ])
      for (const stop of reporting) stop()
      await admins[Symbol.asyncDispose]()
      await ownAdmins[Symbol.asyncDispose]()
    },
  }
}

/** Creates the audit of unseen changes. The audit log is part of the journal, which exists only with tunnels. */
function auditFor({ caches, tunnels, log, registry }: OperatorDeps & { readonly tunnels: TunnelsDeps }, now: () => Date) {
  const audited = [
    caches.instances,
    caches.databases,
    caches.apiTokens,
    tunnels.tunnels,
    tunnels.tunnelPasswords,
    tunnels.tunnelWebhooks,
  ]
  const { journal, digest } = tunnels
  return createUnseenChanges({ caches: audited, namespaces: caches.namespaces, journal, digest, log, registry, now })
}
