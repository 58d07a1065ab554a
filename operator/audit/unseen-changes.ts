import { Counter, type Registry } from 'prom-client'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import type { Namespace } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { labels } from '../../crds/names.ts'
import type { AuditedChange, Journal } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { type Clock, pause, systemClock } from '../../store/clock.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'
import { Backlog } from './backlog.ts'
import { type Change, changesBetween, unseenEntry } from './unseen-change.ts'

export interface UnseenChangesDeps {
  /** Of the kinds that the audit log tells of. */
  readonly caches: readonly Cache<Kind>[]
  readonly namespaces: Cache<typeof Namespace>
  readonly journal: Pick<Journal, 'audited' | 'audit'>
  readonly log: { warn(details: object, message: string): void }
  readonly registry: Registry
  readonly now: () => Date
  /** What stands in an entry in place of a value that may be a secret. */
  readonly digest: ValueDigest
  readonly clock?: Clock
  /** Milliseconds that whoever made a change, or saw it made, has to record it. */
  readonly graceMs?: number
  /** Changes that may wait for the journal, beside those that one look at all objects brings. */
  readonly most?: number
}

const GRACE_MS = 30_000
const LOOK_MS = 1_000
/** Changes that one question to the journal is about. */
const BATCH = 500
/** Each holds on to what its object was: some 4 KB, of a heap of 320 MiB. */
const MOST = 10_000
/** Entries of older objects may be past their retention, a day less than which this is. */
const KEPT_MS = 399 * 86_400_000

/** A change that is to be looked for in the journal. */
interface Pending {
  readonly change: Change
  readonly ofTenant: boolean
}

/**
 * Records what neither the API nor the webhook saw (design, "Permissions"): a change is never missing from the audit log. Each change that
 * the caches show is looked for in the journal a while later, and one without an entry gets one with actor null. At the start that is all
 * there is; from then on nothing is asked while nothing changes. A deletion that nobody recorded while no operator ran is not known here,
 * unless a finalizer held the object.
 *
 * While the journal is away changes wait, and past a number of them the oldest are forgotten. Once it is back all objects are looked at as
 * at the start: what is lost by then are deletions, and what a change was from and to.
 */
export function createUnseenChanges(deps: UnseenChangesDeps): { run(signal: AbortSignal): Promise<void> } {
  const { caches, namespaces, journal, log, now, digest, clock = systemClock, graceMs = GRACE_MS } = deps
  const backlog = new Backlog<Pending>()
  const forgotten = createForgotten(deps)
  let room = 0

  const isTenant = (namespace: string | undefined): boolean =>
    namespaces.get({ name: namespace ?? '' })?.metadata.labels?.[labels.organization] !== undefined

  function expect(before: Resource<Kind> | undefined, after: Resource<Kind> | undefined): void {
    const due = clock.now() + graceMs
    const ofTenant = isTenant((after ?? before)?.metadata.namespace)
    for (const change of changesBetween(before, after, now().getTime())) backlog.add({ change, ofTenant }, due)
  }

  /** Expects all that led to what there is. */
  function expectAll(): void {
    const oldest = now().getTime() - KEPT_MS
    const before = backlog.size
    for (const object of caches.flatMap((cache) => cache.list())) {
      if (Date.parse(object.metadata.creationTimestamp) > oldest) expect(undefined, object)
    }
    room = backlog.size - before + (deps.most ?? MOST)
  }

  /** Returns how to stop. */
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
      forgotten.add(backlog.trim(room))
    })
  }

  /** Owners that are on their way out count as gone: what they own goes first. */
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
    const told = await journal.audited(changes.map(({ resource, generation }) => ({ resource, generation })))
    const isTold = new Set(told.map(nameOf))
    const unseen = changes.filter((change) => !isTold.has(nameOf(change)))
    await Promise.all(unseen.map((change) => journal.audit(unseenEntry(change, { ownersGone: ownersGone(change), digest }))))
  }

  /** Whoever has entries waiting for a journal to be back comes first: what could not be looked for is due again later. */
  async function look(): Promise<void> {
    for (;;) {
      const batch = backlog.take(clock.now(), BATCH)
      if (batch.length === 0) return
      try {
        await record(batch)
      } catch (error) {
        backlog.putBack(batch, clock.now() + graceMs)
        forgotten.add(backlog.trim(room))
        throw error
      }
    }
  }

  async function step(): Promise<void> {
    try {
      await look()
      if (backlog.size === 0 && forgotten.settle()) expectAll()
    } catch (error) {
      log.warn({ err: error }, 'the audit log could not be checked for changes that nobody recorded')
    }
  }

  return {
    async run(signal) {
      await untilSynced([...caches, namespaces], signal)
      if (!signal.aborted) expectAll()
      const stops = signal.aborted ? [] : caches.map(follow)
      // A journal that takes nothing is not waited for then: what is on its way is found again by the next operator.
      while (!signal.aborted) {
        await unlessAborted(step(), signal)
        await pause(clock, Math.min(LOOK_MS, graceMs), signal)
      }
      for (const stop of stops) stop()
    },
  }
}

/** Counts what is forgotten, and says so once until it is settled. */
function createForgotten({ log, registry }: Pick<UnseenChangesDeps, 'log' | 'registry'>) {
  const total = new Counter({
    name: 'mooring_audit_forgotten_changes_total',
    help: 'Changes that were not looked for in the audit log, as too many waited for the journal.',
    registers: [registry],
  })
  let since = 0
  return {
    add(count: number): void {
      if (count === 0) return
      if (since === 0) log.warn({}, 'too many changes wait for the journal: the oldest are not looked for in the audit log')
      since += count
      total.inc(count)
    },
    /** Whether something was forgotten since the last time. */
    settle(): boolean {
      if (since === 0) return false
      log.warn({ forgotten: since }, 'the journal is back: all objects are looked for in the audit log again')
      since = 0
      return true
    },
  }
}

const nameOf = ({ resource, generation }: AuditedChange): string => `${resource} ${generation ?? 'deleted'}`

/** Resolves when `work` has, or `signal` aborts. Not a race against one promise, which would keep each of a day's 86,400 looks in memory. */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => resolve()
    signal.addEventListener('abort', end)
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

async function untilSynced(caches: readonly Pick<Cache<Kind>, 'synced'>[], signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([aborted, Promise.all(caches.map((cache) => cache.synced()))])
}
