import type { Namespace } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { labels } from '../../crds/names.ts'
import type { AuditedChange, Journal } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { type Clock, pause, systemClock } from '../../store/clock.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'
import { type Change, changesBetween, unseenEntry } from './unseen-change.ts'

export interface UnseenChangesDeps {
  /** Of the kinds that the audit log tells of. */
  readonly caches: readonly Cache<Kind>[]
  readonly namespaces: Cache<typeof Namespace>
  readonly journal: Pick<Journal, 'audited' | 'audit'>
  readonly log: { warn(details: object, message: string): void }
  readonly now: () => Date
  readonly clock?: Clock
  /** Milliseconds that whoever made a change, or saw it made, has to record it. */
  readonly graceMs?: number
}

const GRACE_MS = 30_000
const LOOK_MS = 1_000
/** Changes that one question to the journal is about. */
const BATCH = 500
/** Entries of older objects may be past their retention, a day less than which this is. */
const KEPT_MS = 399 * 86_400_000

/** A change, and when it is to be looked for in the journal. */
interface Pending {
  readonly change: Change
  readonly ofTenant: boolean
  readonly due: number
}

/**
 * Records what neither the API nor the webhook saw (design, "Permissions"): a change is never missing from the audit log. Each change that
 * the caches show is looked for in the journal a while later, and one without an entry gets one with actor null. At the start that is all
 * there is; from then on nothing is asked while nothing changes. A deletion that nobody recorded while no operator ran is not known here,
 * unless a finalizer held the object.
 */
export function createUnseenChanges(deps: UnseenChangesDeps): { run(signal: AbortSignal): Promise<void> } {
  const { caches, namespaces, journal, log, now, clock = systemClock, graceMs = GRACE_MS } = deps
  /** In the order of their time. */
  const pending: Pending[] = []

  const isTenant = (namespace: string | undefined): boolean =>
    namespaces.get({ name: namespace ?? '' })?.metadata.labels?.[labels.organization] !== undefined

  function expect(before: Resource<Kind> | undefined, after: Resource<Kind> | undefined): void {
    const due = clock.now() + graceMs
    const ofTenant = isTenant((after ?? before)?.metadata.namespace)
    for (const change of changesBetween(before, after, now().getTime())) pending.push({ change, ofTenant, due })
  }

  /** Returns how to stop. */
  function follow(cache: Cache<Kind>): () => void {
    const known = new Map<string, Resource<Kind>>()
    const oldest = now().getTime() - KEPT_MS
    for (const object of cache.list()) {
      known.set(keyToString(keyOf(object)), object)
      if (Date.parse(object.metadata.creationTimestamp) > oldest) expect(undefined, object)
    }
    return cache.onChange((key: Key) => {
      const id = keyToString(key)
      const [before, after] = [known.get(id), cache.get(key)]
      if (after) known.set(id, after)
      else known.delete(id)
      const isSame = before?.metadata.uid === after?.metadata.uid
      if (before && !isSame) expect(before, undefined)
      if (after) expect(isSame ? before : undefined, after)
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
    await Promise.all(unseen.map((change) => journal.audit(unseenEntry(change, { ownersGone: ownersGone(change) }))))
  }

  async function look(): Promise<void> {
    for (;;) {
      const batch = pending.slice(0, BATCH).filter(({ due }) => due <= clock.now())
      if (batch.length === 0) return
      await record(batch)
      pending.splice(0, batch.length)
    }
  }

  async function step(): Promise<void> {
    try {
      await look()
    } catch (error) {
      log.warn({ err: error }, 'the audit log could not be checked for changes that nobody recorded')
      // Whoever has entries waiting for the journal to be back comes first.
      const due = clock.now() + graceMs
      pending.forEach(({ change, ofTenant }, place) => (pending[place] = { change, ofTenant, due }))
    }
  }

  return {
    async run(signal) {
      await untilSynced([...caches, namespaces], signal)
      const stops = signal.aborted ? [] : caches.map(follow)
      // A journal that takes nothing is not waited for then: what is on its way is found again by the next operator.
      const ended = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      while (!signal.aborted) {
        await Promise.race([step(), ended])
        await pause(clock, Math.min(LOOK_MS, graceMs), signal)
      }
      for (const stop of stops) stop()
    },
  }
}

const nameOf = ({ resource, generation }: AuditedChange): string => `${resource} ${generation ?? 'deleted'}`

async function untilSynced(caches: readonly Pick<Cache<Kind>, 'synced'>[], signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([aborted, Promise.all(caches.map((cache) => cache.synced()))])
}
