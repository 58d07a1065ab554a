import type { Logger } from 'pino'
import { DedicatedDatabase, isCreated } from '../../crds/dedicated-database.ts'
import type { Kind } from '../../crds/kind.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key, type Store } from '../../store/port.ts'
import { type SessionBounds, type Suspension, SuspensionCause } from '../engines/engine.ts'
import type { Events } from '../events/events.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { instanceNamed } from '../shared-instance/indexes.ts'
import { suffixOf, tenantSuffix } from '../shared-instance/kept-secret.ts'
import type { Discarded } from '../server/discarded.ts'
import type { Suspicions } from '../shared-instance/slots.ts'
import type { Restarts } from './restarts.ts'
import { type KeptCredentials, type Owner, readSecrets, createSizeCheck } from './server-checks.ts'
import { createSuspensionReports } from './suspensions.ts'
import { whenAborted } from '../../shared/timers.ts'

export interface WatchdogDeps {
  readonly store: Store
  /** Instances, with the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  /** Databases, with the indexes of dedicated-database/indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly admins: Admins
  readonly suspicions: Suspicions
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly events: Events
  readonly restarts: Restarts
  readonly discarded: Pick<Discarded, 'countOn'>
  readonly limits: SessionBounds
  readonly every: { readonly sessionsMs: number; readonly sweepMs: number }
  /** Receives at each sweep the share of transaction ids that a server has used, 0 to 1. */
  readonly onTransactionIds: (server: string, used: number) => Promise<void>
  /** Receives the databases whose tenants were suspended because the server ended for lack of memory. */
  readonly onOutOfMemory: (server: string, databases: readonly string[]) => Promise<void>
}

/** Enforces limits that engines lack: sessions above their limits, databases above their size, differences of catalog and store. */
export interface Watchdog {
  /** Runs until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Calls `wake` with objects of the kind that need a decision. @returns a function that unsubscribes */
  onSuspicion(kind: Pick<Kind, 'kind'>, wake: (key: Key) => void): () => void
  /** Compares sizes and catalogs of every server, and the Secrets of every tenant namespace, with the desired state. */
  sweep(): Promise<void>
}

/** State of one sweep. */
interface Round {
  /** Names without a resource, as `server/name`, found by this sweep. */
  readonly suspects: Set<string>
  readonly credentials: ReadonlyMap<string, readonly InForce[]>
}

interface InForce extends KeptCredentials {
  readonly credentials: NonNullable<KeptCredentials['credentials']>
}

/** Whether the Secret's password should be the engine's now. */
function isInForce(kept: KeptCredentials): kept is InForce {
  const { spec, status } = kept.owner
  const version = kept.credentials?.passwordVersion
  return version !== undefined && version === spec.passwordVersion && version === status?.passwordVersion
}

/** Returns the tenants that were suspended for this cause. */
const suspendedFor = (cause: SuspensionCause, suspended: readonly Suspension[]): readonly string[] =>
  suspended.filter((suspension) => suspension.cause === cause).map(({ name }) => name)

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')

export function createWatchdog(deps: WatchdogDeps): Watchdog {
  const { instances, databases, admins, suspicions, log, limits, every } = deps
  const wakers = new Set<{ readonly kind: string; readonly wake: (key: Key) => void }>()
  let suspects: ReadonlySet<string> = new Set()
  let sweeping: Promise<void> | undefined

  function wake(owner: Owner): void {
    for (const waker of wakers) if (waker.kind === owner.kind) waker.wake(keyOf(owner))
  }
  const isOccupied = (server: string) => instances.countByIndex('server', server) + deps.discarded.countOn(server) > 0
  const ownerOf = (name: string) => instanceNamed(instances, name)
  const isOwned = (name: string) => (ownerOf(name) ?? databases.byIndex('suffix', suffixOf(name) ?? '')[0]) !== undefined
  const reportSuspensions = createSuspensionReports({ ownerOf, events: deps.events, log, limits })
  const checkSizes = createSizeCheck({ instances, suspicions, sizeBytes: limits.sizeBytes, log, wake })

  /** Creates a check of every server at once. A slow server delays no other, and is skipped while its last check runs. */
  function onEachServer<Args extends unknown[]>(check: (name: string, open: OpenServer, ...args: Args) => Promise<void>) {
    const underWay = new Set<string>()
    async function one(name: string, args: Args): Promise<void> {
      const open = admins.get(name)
      if (!open || underWay.has(name)) return
      underWay.add(name)
      try {
        await check(name, open, ...args)
      } catch (error) {
        log.warn({ server: name, reason: reasonOf(error) }, 'database server not checked')
      } finally {
        underWay.delete(name)
      }
    }
    return async (...args: Args) => {
      await Promise.all(admins.names().map((name) => one(name, args)))
    }
  }

  const checkSessions = onEachServer(async (server, open) => {
    if (!isOccupied(server)) return checkDedicated(server, open)
    const { cancelled, ended, suspended = [], needsRestart = false } = await open.admin.enforce(limits)
    if (cancelled + ended > 0) log.info({ server, cancelled, ended }, 'sessions past their bounds')
    reportSuspensions(server, suspended)
    const databases = suspendedFor(SuspensionCause.memory, suspended)
    if (databases.length > 0) await deps.onOutOfMemory(server, databases)
    // Its other checks would fail.
    if (needsRestart && (await deps.restarts.request(server, suspendedFor(SuspensionCause.statement, suspended)))) return
    // A tenant that writes at disk speed would fill the server's volume between two sweeps.
    await checkSizes(server, open, 'busy')
    // A migration that recreates schema public needs its extensions right after.
    await checkExtensions(server, open, instances.byIndex('server', server))
  })

  async function checkDedicated(server: string, open: OpenServer): Promise<void> {
    await endExcluded(server, open)
    const owners = databases.byIndex('server', server)
    if (owners.some(isCreated)) await checkExtensions(server, open, owners)
  }

  /** Ends sessions that the rules of a dedicated server exclude. Its statements have no bounds; a server without rules has no such sessions. */
  async function endExcluded(server: string, { admin }: OpenServer): Promise<void> {
    const ended = await admin.endExcluded()
    if (ended > 0) log.info({ server, ended }, 'sessions from excluded sources ended')
  }

  const sweepServers = onEachServer(async (server, open, round: Round) => {
    await deps.onTransactionIds(server, await open.admin.guardTransactionIds())
    if (isOccupied(server)) await checkSizes(server, open, 'all')
    await checkCatalog(server, open, round)
    await checkPasswords(open, round.credentials.get(server) ?? [])
  })

  async function checkCatalog(server: string, { admin }: OpenServer, round: Round): Promise<void> {
    const { tenants } = await admin.catalog()
    for (const instance of instances.byIndex('server', server)) {
      const name = instance.status?.name
      const known = suspicions.missing.has(instance.metadata.uid)
      const gone = name !== undefined && tenants.get(name)?.database !== true
      if (gone === known) continue
      if (gone) suspicions.missing.add(instance.metadata.uid)
      wake(instance)
    }
    // The store is read only for names whose owner is in neither cache, which is rare.
    const unowned = [...tenants.keys()].filter((name) => !isOwned(name))
    for (const name of await findOrphans(deps.store, unowned)) {
      // Dropped only when found twice: a database created during this sweep has its resource by the next.
      if (!suspects.has(`${server}/${name}`)) round.suspects.add(`${server}/${name}`)
      else {
        await admin.drop(name)
        log.warn({ server, database: name }, 'dropped a database that belongs to no resource')
      }
    }
  }

  async function checkPasswords({ admin }: OpenServer, kept: readonly InForce[]): Promise<void> {
    if (kept.length === 0) return
    const changed = new Set(await admin.findChangedPasswords(kept.map(({ credentials }) => credentials)))
    for (const { owner } of kept.filter(({ credentials }) => changed.has(credentials.name))) {
      log.info({ kind: owner.kind, object: keyOf(owner) }, 'password changed or expired on the server')
      suspicions.password.add(owner.metadata.uid)
      wake(owner)
    }
  }

  /** Wakes the owners whose database has other extensions than their status: a tenant drops them with the schema that they are in. */
  async function checkExtensions(server: string, { admin }: OpenServer, owners: readonly Owner[]): Promise<void> {
    const claimed = owners.filter(({ status }) => status?.name !== undefined)
    const byName = new Map(claimed.map((owner) => [owner.status?.name ?? '', owner]))
    const recorded = new Map(claimed.map(({ status }) => [status?.name ?? '', status?.extensions ?? []]))
    for (const name of await admin.findChangedExtensions(recorded)) {
      const owner = byName.get(name)
      if (!owner) continue
      log.info({ server, kind: owner.kind, object: keyOf(owner) }, 'extensions changed in the database')
      suspicions.extensions.add(owner.metadata.uid)
      wake(owner)
    }
  }

  async function readCredentials(): Promise<Round['credentials']> {
    const onError = (namespace: string, error: unknown) =>
      log.warn({ namespace, reason: reasonOf(error) }, 'Secrets of a namespace not readable')
    const kept = await readSecrets({ ...deps, onError })
    for (const { owner } of kept.filter(({ credentials }) => credentials === undefined)) {
      log.info({ kind: owner.kind, object: keyOf(owner) }, 'credential Secret missing or changed by hand')
      wake(owner)
    }
    return Map.groupBy(kept.filter(isInForce), ({ owner }) => owner.status?.serverRef?.name ?? '')
  }

  async function sweep(): Promise<void> {
    const round = { suspects: new Set<string>(), credentials: await readCredentials() }
    await sweepServers(round)
    suspects = round.suspects
    suspicions.prune((uid) => (instances.byUid(uid) ?? databases.byUid(uid)) !== undefined)
  }

  /** Runs one sweep at a time: names found by two successive sweeps are dropped. */
  const sweepUnlessBusy = () => (sweeping ??= sweep().finally(() => (sweeping = undefined)))

  /** Starts `work` every `ms`, also while earlier runs wait for a server. @returns a function that stops and waits for all runs */
  function repeat(ms: number, work: () => Promise<void>): () => Promise<void> {
    const running = new Set<Promise<void>>()
    const timer = setInterval(() => {
      const run = work().finally(() => running.delete(run))
      running.add(run)
    }, ms)
    return async () => {
      clearInterval(timer)
      await Promise.allSettled(running)
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const stops = [repeat(every.sessionsMs, checkSessions), repeat(every.sweepMs, sweepUnlessBusy)]
    await whenAborted(signal)
    await Promise.all(stops.map((stop) => stop()))
  }

  return {
    run,
    sweep,
    onSuspicion({ kind }, wake) {
      const waker = { kind, wake }
      wakers.add(waker)
      return () => void wakers.delete(waker)
    },
  }
}

/**
 * Returns the names of an engine's catalog that belong to no SharedInstance or DedicatedDatabase. The store, not a cache, is read after the catalog: a database
 * is created after its resource, so a database whose resource is missing now is an orphan.
 */
async function findOrphans(store: Store, names: Iterable<string>): Promise<readonly string[]> {
  const ours = [...names].flatMap((name) => {
    const suffix = suffixOf(name)
    return suffix === undefined ? [] : [{ name, suffix }]
  })
  if (ours.length === 0) return []
  const lists = await Promise.all([store.list(SharedInstance), store.list(DedicatedDatabase)])
  const owned = new Set(lists.flatMap(({ items }) => items.map(({ metadata }) => tenantSuffix(metadata.uid))))
  return ours.filter(({ suffix }) => !owned.has(suffix)).map(({ name }) => name)
}
