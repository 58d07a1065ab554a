import { Counter, type Registry } from 'prom-client'
import type { ValueDigest } from '../../journal/audit-entry.ts'
import type { Namespace } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { labels } from '../../crds/names.ts'
import type { AuditedChange, Journal } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { type Clock, pause, systemClock, whenAborted } from '../../shared/timers.ts'
import { keyOf, keyToString, type Key } from '../../store/port.ts'
import { type Change, changesBetween, unseenEntry } from './unseen-change.ts'

export interface UnseenChangesDeps {
  /** Caches of the audited kinds. */
  readonly caches: readonly Cache<Kind>[]
  readonly namespaces: Cache<typeof Namespace>
  readonly journal: Pick<Journal, 'audited' | 'audit'>
  readonly log: { warn(details: object, message: string): void }
  readonly registry: Registry
  readonly now: () => Date
  /** Digest that replaces a possibly secret value in an entry. */
  readonly digest: ValueDigest
  readonly clock?: Clock
  /** Milliseconds that the API and the webhook have to record a change. */
  readonly graceMs?: number
  /** Maximum number of changes that wait for the journal, in addition to those found by a check of all objects. */
  readonly most?: number
}

const GRACE_MS = 30_000
const POLL_MS = 1_000
/** Changes in one query to the journal. */
const BATCH = 500
/** Each pending change holds the former object: some 4 KB, of a heap of 320 MiB. */
const MOST = 10_000
/** Age up to which objects are checked: one day less than the retention of entries. */
const KEPT_MS = 399 * 86_400_000

/** Change whose audit entry has not been checked yet. */
interface Pending {
  readonly change: Change
  readonly ofTenant: boolean
}

/**
 * Records the changes that neither the API nor the webhook recorded, so that the audit log is complete (docs/api.md, "Audit log"). Each
 * change that a cache shows is looked up in the journal after a grace time; a change without an entry gets one with actor null. The first
 * check covers all objects. Later checks cover only changes. A deletion that happened while no operator ran is found only if a finalizer
 * held the object.
 *
 * While the journal is unavailable, changes wait. Above a maximum number the oldest are dropped; all objects are then checked again when
 * the journal is back. That check does not find deletions, nor the values before a change.
 */
export function createUnseenChanges(deps: UnseenChangesDeps): { run(signal: AbortSignal): Promise<void> } {
  const { caches, namespaces, journal, log, now, digest, clock = systemClock, graceMs = GRACE_MS } = deps
  const backlog = new Backlog<Pending>()
  const dropped = createDropCounter(deps)
  let limit = 0

  const isTenant = (namespace: string | undefined): boolean =>
    namespaces.get({ name: namespace ?? '' })?.metadata.labels?.[labels.organization] !== undefined

  function expect(before: Resource<Kind> | undefined, after: Resource<Kind> | undefined): void {
    const due = clock.now() + graceMs
    const ofTenant = isTenant((after ?? before)?.metadata.namespace)
    for (const change of changesBetween(before, after, now().getTime())) backlog.add({ change, ofTenant }, due)
  }

  /** Adds the writes that led to the present objects. */
  function expectAll(): void {
    const oldest = now().getTime() - KEPT_MS
    const before = backlog.size
    for (const object of caches.flatMap((cache) => cache.list())) {
      if (Date.parse(object.metadata.creationTimestamp) > oldest) expect(undefined, object)
    }
    limit = backlog.size - before + (deps.most ?? MOST)
  }

  /** Follows the changes of a cache. @returns a function that unsubscribes */
  function follow(cache: Cache<Kind>): () => void {
    const known = new Map(cache.list().map((object) => [keyToString(keyOf(object)), object]))
    return cache.onChange((key: Key) => {
      const id = keyToString(key)
      const [before, after] = [known.get(id), cache.get(key)]
      if (after) known.set(id, after)
      else known.delete(id)
      const isSame = before?.metadata.uid === after?.metadata.uid
      if (before && !isSame) expect(before, undefined)
      if (after) expect(isSame ? before : undefined, after)
      dropped.add(backlog.trim(limit))
    })
  }

  /** Whether all owners are gone or being deleted: the objects that they own are deleted first. */
  function ownersGone({ object }: Change): boolean {
    const owners = object.metadata.ownerReferences ?? []
    const stays = ({ uid }: { readonly uid: string }) =>
      caches.some((cache) => {
        const owner = cache.byUid(uid)
        return owner !== undefined && owner.metadata.deletionTimestamp === undefined
      })
    return owners.length > 0 && !owners.some(stays)
  }

  async function record(batch: readonly Pending[]): Promise<void> {
    const changes = batch
      .filter(({ change, ofTenant }) => ofTenant || isTenant(change.object.metadata.namespace))
      .map(({ change }) => change)
    if (changes.length === 0) return
    const recorded = await journal.audited(changes.map(({ resource, generation }) => ({ resource, generation })))
    const isRecorded = new Set(recorded.map(nameOf))
    const unseen = changes.filter((change) => !isRecorded.has(nameOf(change)))
    await Promise.all(unseen.map((change) => journal.audit(unseenEntry(change, { ownersGone: ownersGone(change), digest }))))
  }

  /** Checks all due changes. When the journal fails, the batch is due again after the grace time. */
  async function checkDue(): Promise<void> {
    for (;;) {
      const batch = backlog.take(clock.now(), BATCH)
      if (batch.length === 0) return
      try {
        await record(batch)
      } catch (error) {
        backlog.putBack(batch, clock.now() + graceMs)
        dropped.add(backlog.trim(limit))
        throw error
      }
    }
  }

  async function step(): Promise<void> {
    try {
      await checkDue()
      if (backlog.size === 0 && dropped.settle()) expectAll()
    } catch (error) {
      log.warn({ err: error }, 'the audit log could not be checked for unrecorded changes')
    }
  }

  return {
    async run(signal) {
      await untilSynced([...caches, namespaces], signal)
      if (!signal.aborted) expectAll()
      const stops = signal.aborted ? [] : caches.map(follow)
      // Shutdown does not wait for a journal that hangs: the next operator finds the same changes again.
      while (!signal.aborted) {
        await unlessAborted(step(), signal)
        await pause(clock, Math.min(POLL_MS, graceMs), signal)
      }
      for (const stop of stops) stop()
    },
  }
}

/** Counts dropped changes, and logs the first of them until `settle`. */
function createDropCounter({ log, registry }: Pick<UnseenChangesDeps, 'log' | 'registry'>) {
  const total = new Counter({
    name: 'mooring_audit_forgotten_changes_total',
    help: 'Changes whose audit entry was not checked, as too many waited for the journal.',
    registers: [registry],
  })
  let since = 0
  return {
    add(count: number): void {
      if (count === 0) return
      if (since === 0)
        log.warn({}, 'too many changes wait for the journal: the oldest are dropped, and not recorded in the audit log')
      since += count
      total.inc(count)
    },
    /** Whether changes were dropped since the last call. */
    settle(): boolean {
      if (since === 0) return false
      log.warn({ dropped: since }, 'the journal is available again: all objects are checked against the audit log')
      since = 0
      return true
    },
  }
}

const nameOf = ({ resource, generation }: AuditedChange): string => `${resource} ${generation ?? 'deleted'}`

/** Resolves when `work` has, or `signal` aborts. A race against one promise would keep each of a day's 86,400 checks in memory. */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => resolve()
    signal.addEventListener('abort', end)
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

async function untilSynced(caches: readonly Pick<Cache<Kind>, 'synced'>[], signal: AbortSignal): Promise<void> {
  await Promise.race([whenAborted(signal), Promise.all(caches.map((cache) => cache.synced()))])
}

interface Waiting<T> {
  readonly item: T
  readonly due: number
}

/** FIFO queue of items, each with the time at which it is due. Times are milliseconds of one clock. */
export class Backlog<T> {
  #waiting: Waiting<T>[] = []

  get size(): number {
    return this.#waiting.length
  }

  /** Appends an item, which must not be due before the last item of the queue. */
  add(item: T, due: number): void {
    this.#waiting.push({ item, due })
  }

  /** Drops the oldest items until at most `most` are left. @returns number of dropped items */
  trim(most: number): number {
    return this.#waiting.splice(0, Math.max(0, this.#waiting.length - most)).length
  }

  /** Removes and returns at most `most` items that are due at `now`, oldest first. */
  take(now: number, most: number): readonly T[] {
    const isLater = this.#waiting.findIndex(({ due }) => due > now)
    const count = Math.min(isLater < 0 ? this.#waiting.length : isLater, most)
    return this.#waiting.splice(0, count).map(({ item }) => item)
  }

  /** Puts `items` back at the front. All items of the queue are then due at `due`. */
  putBack(items: readonly T[], due: number): void {
    this.#waiting = [...items, ...this.#waiting.map(({ item }) => item)].map((item) => ({ item, due }))
  }
}
