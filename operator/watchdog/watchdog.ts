import type { Logger } from 'pino'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import type { SessionBounds } from '../engines/engine.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { suffixOf } from '../shared-instance/naming.ts'
import type { Suspicions } from '../shared-instance/suspicions.ts'
import { findOrphans } from './orphans.ts'
import { type KeptCredentials, readSecrets } from './secrets.ts'
import { createSizeCheck } from './sizes.ts'

export interface WatchdogDeps {
  readonly store: Store
  /** With the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  readonly suspicions: Suspicions
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly limits: SessionBounds
  readonly every: { readonly sessionsMs: number; readonly sweepMs: number }
  /** Called at each sweep with the part of its transaction ids that a server has used up, 0 to 1. */
  readonly onTransactionIds: (server: string, used: number) => Promise<void>
}

/** Looks after what no engine limits by itself: sessions past their bounds, databases that grow too large, differences of catalog and store. */
export interface Watchdog {
  /** Until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Calls `wake` with instances that need a decision. */
  onSuspicion(wake: (key: Key) => void): () => void
  /** Compares sizes and catalogs of every server, and the Secrets of every tenant namespace, with what there should be. */
  sweep(): Promise<void>
}

/** What one sweep hands from step to step. */
interface Round {
  /** Names without a resource, as `server/name`, found by this sweep. */
  readonly suspects: Set<string>
  readonly credentials: ReadonlyMap<string, readonly InForce[]>
}

interface InForce extends KeptCredentials {
  readonly credentials: NonNullable<KeptCredentials['credentials']>
}

/** Whether the password in the Secret is the one that the engine should have by now. */
function isInForce(kept: KeptCredentials): kept is InForce {
  const { spec, status } = kept.instance
  const version = kept.credentials?.passwordVersion
  return version !== undefined && version === spec.passwordVersion && version === status?.passwordVersion
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')

export function createWatchdog(deps: WatchdogDeps): Watchdog {
  const { instances, admins, suspicions, log, limits, every } = deps
  const wakers = new Set<(key: Key) => void>()
  let suspects: ReadonlySet<string> = new Set()
  let sweeping: Promise<void> | undefined

  const wake = (instance: SharedInstance) => wakers.forEach((waker) => waker(keyOf(instance)))
  const isOccupied = (server: string) => instances.countByIndex('server', server) > 0
  const ownerOf = (name: string) => instances.byIndex('suffix', suffixOf(name) ?? '')[0]
  const checkSizes = createSizeCheck({ instances, suspicions, sizeBytes: limits.sizeBytes, log, wake })

  /** Runs a check on every server at once. A server that does not answer delays no other, and is not asked again before it does. */
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
    if (!isOccupied(server)) return
    const { cancelled, ended } = await open.admin.enforce(limits)
    if (cancelled + ended > 0) log.info({ server, cancelled, ended }, 'sessions past their bounds')
    // A tenant that writes as fast as the disk takes it would outgrow the server's volume between two sweeps.
    await checkSizes(server, open, 'busy')
  })

  const sweepServers = onEachServer(async (server, open, round: Round) => {
    await deps.onTransactionIds(server, await open.admin.guardTransactionIds())
    if (isOccupied(server)) await checkSizes(server, open, 'all')
    await checkCatalog(server, open, round)
    await checkPasswords(open, round.credentials.get(server) ?? [])
    await checkExtensions(server, open)
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
    // The store itself, which lists all there is, is asked only about names whose owner the cache does not have: seldom any.
    const unowned = [...tenants.keys()].filter((name) => !ownerOf(name))
    for (const name of await findOrphans(deps.store, unowned)) {
      // Twice in a row: what appeared during this sweep has its resource by the next.
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
    for (const { instance } of kept.filter(({ credentials }) => changed.has(credentials.name))) {
      log.info({ instance: keyOf(instance) }, 'password changed or expired on the server')
      suspicions.password.add(instance.metadata.uid)
      wake(instance)
    }
  }

  async function checkExtensions(server: string, { admin }: OpenServer): Promise<void> {
    const having = instances.byIndex('server', server).filter(({ status }) => (status?.extensions?.length ?? 0) > 0)
    const wanted = new Map(having.map(({ status }) => [status?.name ?? '', status?.extensions ?? []]))
    if (wanted.size === 0) return
    for (const name of await admin.findMissingExtensions(wanted)) {
      const owner = ownerOf(name)
      if (!owner) continue
      log.info({ server, instance: keyOf(owner) }, 'extension dropped by the tenant')
      suspicions.extensions.add(owner.metadata.uid)
      wake(owner)
    }
  }

  async function readCredentials(): Promise<Round['credentials']> {
    const onError = (namespace: string, error: unknown) =>
      log.warn({ namespace, reason: reasonOf(error) }, 'Secrets of a namespace not readable')
    const kept = await readSecrets({ ...deps, onError })
    for (const { instance } of kept.filter(({ credentials }) => credentials === undefined)) {
      log.info({ instance: keyOf(instance) }, 'credential Secret missing or changed by hand')
      wake(instance)
    }
    return Map.groupBy(kept.filter(isInForce), ({ instance }) => instance.status?.serverRef?.name ?? '')
  }

  async function sweep(): Promise<void> {
    const round = { suspects: new Set<string>(), credentials: await readCredentials() }
    await sweepServers(round)
    suspects = round.suspects
    suspicions.prune((uid) => instances.byUid(uid) !== undefined)
  }

  /** One sweep at a time: what it finds the second time in a row is acted upon. */
  const sweepUnlessBusy = () => (sweeping ??= sweep().finally(() => (sweeping = undefined)))

  /** Starts `work` every `ms`, also while earlier runs wait for a server. Returns how to stop, which waits for all of them. */
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
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.all(stops.map((stop) => stop()))
  }

  return {
    run,
    sweep,
    onSuspicion(waker) {
      wakers.add(waker)
      return () => void wakers.delete(waker)
    },
  }
}
