import type { Logger } from 'pino'
import { InstanceReason, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Admins, OpenServer } from '../server/admins.ts'
import { suffixOf } from '../shared-instance/naming.ts'
import type { Suspicions } from '../shared-instance/suspicions.ts'
import { findOrphans } from './orphans.ts'
import { findUnsoundSecrets } from './secrets.ts'

export interface WatchdogDeps {
  readonly store: Store
  /** With the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  readonly suspicions: Suspicions
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly limits: { readonly statementMs: number; readonly sizeBytes: number }
  readonly every: { readonly statementsMs: number; readonly sweepMs: number }
}

/** Looks after what SQL cannot limit: statements that run too long, databases that grow too large, and what the catalog and the store disagree on. */
export interface Watchdog {
  /** Until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Calls `wake` with instances that need a decision. */
  onSuspicion(wake: (key: Key) => void): () => void
  /** One look at sizes and catalogs of every server, both ways, and at the Secrets of every tenant namespace. */
  sweep(): Promise<void>
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')

const resetsOf = (status: SharedInstance['status']): number => status?.resetVersion ?? 0

/** Whether a reset that is wished has not begun, and does not until its template can be copied: a database is as large as it was meanwhile. */
function waitsToReset(instance: SharedInstance): boolean {
  const reason = conditionOf(instance, 'Ready')?.reason
  const waits = reason === InstanceReason.TemplateNotFound || reason === InstanceReason.TemplateInUse
  return waits && instance.spec.resetVersion > resetsOf(instance.status)
}

export function createWatchdog(deps: WatchdogDeps): Watchdog {
  const { instances, admins, suspicions, log, limits, every } = deps
  const wakers = new Set<(key: Key) => void>()
  let suspects: ReadonlySet<string> = new Set()

  const wake = (instance: SharedInstance) => wakers.forEach((waker) => waker(keyOf(instance)))
  const isOccupied = (server: string) => instances.countByIndex('server', server) > 0
  const ownerOf = (name: string) => instances.byIndex('suffix', suffixOf(name) ?? '')[0]

  async function eachServer(look: (name: string, open: OpenServer) => Promise<void>): Promise<void> {
    for (const name of admins.names()) {
      const open = admins.get(name)
      try {
        if (open) await look(name, open)
      } catch (error) {
        log.warn({ server: name, reason: reasonOf(error) }, 'a database server could not be looked at')
      }
    }
  }

  const cancelLong = () =>
    eachServer(async (server, { admin }) => {
      if (!isOccupied(server)) return
      const cancelled = await admin.cancelLongStatements(limits.statementMs)
      if (cancelled > 0) log.info({ server, cancelled }, 'statements past their time were cancelled')
    })

  async function checkSizes(server: string, { admin }: OpenServer): Promise<void> {
    const resets = new Map(instances.byIndex('server', server).map(({ metadata, status }) => [metadata.uid, resetsOf(status)]))
    for (const [name, bytes] of await admin.sizes()) {
      const owner = ownerOf(name)
      if (!owner) continue
      const { uid } = owner.metadata
      // What is or was being emptied meanwhile may have been measured full: its new database would be switched off for it.
      if (owner.spec.resetVersion > (resets.get(uid) ?? resetsOf(owner.status)) && !waitsToReset(owner)) continue
      if (bytes > limits.sizeBytes === suspicions.oversize.has(uid)) continue
      if (bytes > limits.sizeBytes) suspicions.oversize.add(uid)
      else suspicions.oversize.delete(uid)
      wake(owner)
    }
  }

  async function checkCatalog(server: string, { admin }: OpenServer, next: Set<string>): Promise<void> {
    const { tenants } = await admin.catalog()
    for (const instance of instances.byIndex('server', server)) {
      const name = instance.status?.name
      const known = suspicions.missing.has(instance.metadata.uid)
      const gone = name !== undefined && tenants.get(name)?.database !== true
      if (gone === known) continue
      if (gone) suspicions.missing.add(instance.metadata.uid)
      wake(instance)
    }
    // What the cache has an owner of is no orphan; of the rest, seldom any, the store itself is asked, which lists all there is.
    const unowned = [...tenants.keys()].filter((name) => !ownerOf(name))
    for (const name of await findOrphans(deps.store, unowned)) {
      // Twice in a row: what appeared while we were looking has its resource by the next time.
      if (!suspects.has(`${server}/${name}`)) next.add(`${server}/${name}`)
      else {
        await admin.drop(name)
        log.warn({ server, database: name }, 'dropped a database that belongs to no resource')
      }
    }
  }

  async function checkSecrets(): Promise<void> {
    const onError = (namespace: string, error: unknown) =>
      log.warn({ namespace, reason: reasonOf(error) }, 'the Secrets of a namespace could not be looked at')
    for (const instance of await findUnsoundSecrets({ ...deps, onError })) {
      log.info({ instance: keyOf(instance) }, 'a credential Secret is gone or was changed by hand')
      wake(instance)
    }
  }

  async function sweep(): Promise<void> {
    const next = new Set<string>()
    await eachServer(async (server, open) => {
      if (isOccupied(server)) await checkSizes(server, open)
      await checkCatalog(server, open, next)
    })
    suspects = next
    suspicions.prune((uid) => instances.byUid(uid) !== undefined)
    await checkSecrets()
  }

  function repeat(ms: number, work: () => Promise<void>): () => Promise<void> {
    let running: Promise<void> = Promise.resolve()
    let busy = false
    const timer = setInterval(() => {
      if (busy) return
      busy = true
      running = work().finally(() => (busy = false))
    }, ms)
    return async () => {
      clearInterval(timer)
      await running
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const stops = [repeat(every.statementsMs, cancelLong), repeat(every.sweepMs, sweep)]
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
