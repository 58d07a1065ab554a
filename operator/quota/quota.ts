import type { Kind, ObjectMeta, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import { keyOf, type Key } from '../../store/port.ts'
import { aspectChangesOf, eventsOf, laterThan, type Source } from '../runtime/source.ts'

/** Object of a kind with a quota. */
export interface Limited extends Conditioned {
  readonly metadata: ObjectMeta
}

export interface QuotaDeps<T extends Limited> {
  /** Cache with the indexes of {@link quotaIndexes}, made with the same `hasBegun`. */
  readonly cache: {
    count(options: { readonly namespace: string }): number
    byIndex(index: string, value: string): readonly T[]
    countByIndex(index: string, value: string): number
    byUid(uid: string): T | undefined
  }
  /** Maximum number in one namespace. */
  readonly max: number
  /** Whether an object has its resources already: it keeps them, whatever the quota says. */
  readonly hasBegun: (object: T) => boolean
  /** Returns the number of deleted objects in a namespace that still take resources. Default: none. */
  readonly lingering?: (namespace: string) => number
}

/** Full namespace. `taken` may exceed `max`, since a quota may be lowered. */
export interface Full {
  readonly taken: number
  readonly max: number
  /** Number of deleted objects among `taken` that still take resources. Absent: none. */
  readonly lingering?: number
}

/**
 * Limits the number of objects of a kind in a namespace: objects that have begun come first, then the oldest of the others. Writes nothing.
 * Admissions are remembered until the cache shows that the object has begun: of two objects created in the same second, the cache may show
 * the one with the lower uid last.
 */
export interface Quota<T extends Limited> {
  /** Admits an object of the cache that has not begun, or returns how full its namespace is. */
  admit(object: T): Full | undefined
  /** Number of the given objects, none of which has begun, that are admitted or may be admitted among the present objects. */
  countAdmissible(objects: readonly T[]): number
  /** Oldest objects in a namespace whose status says that the quota is exceeded, as many as may now be admitted. */
  next(namespace: string): readonly Key[]
}

export function createQuota<T extends Limited>({ cache, max, hasBegun, lingering = () => 0 }: QuotaDeps<T>): Quota<T> {
  /** Uids of the admitted objects, by namespace. */
  const admitted = new Map<string, Set<string>>()

  /** Admitted objects that the cache does not show as begun. */
  function admittedIn(namespace: string): Set<string> {
    const uids = admitted.get(namespace) ?? new Set<string>()
    for (const uid of uids) {
      const object = cache.byUid(uid)
      if (!object || hasBegun(object)) uids.delete(uid)
    }
    if (uids.size === 0) admitted.delete(namespace)
    return uids
  }

  const begunIn = (namespace: string): number =>
    cache.count({ namespace }) - cache.countByIndex('unbegun', namespace) + lingering(namespace)

  function admit(object: T): Full | undefined {
    const { namespace = '', uid } = object.metadata
    if (admitted.get(namespace)?.has(uid)) return undefined
    const others = admittedIn(namespace)
    const isSmall = cache.count({ namespace }) + lingering(namespace) <= max
    const full = isSmall ? undefined : fullFor(object, others)
    if (!full) admitted.set(namespace, others.add(uid))
    return full
  }

  function fullFor({ metadata }: T, others: ReadonlySet<string>): Full | undefined {
    const { namespace = '' } = metadata
    const taken = begunIn(namespace) + others.size
    const free = max - taken
    let older = 0
    // Runs for each of thousands of waiting objects: they are not listed in a full namespace, and not sorted in any other.
    if (free > 0) {
      for (const { metadata: other } of cache.byIndex('unbegun', namespace)) {
        const isBefore = other.deletionTimestamp === undefined && !others.has(other.uid) && byAge(other, metadata) < 0
        if (isBefore) older += 1
        if (older === free) break
      }
    }
    if (older < free) return undefined
    const deleted = lingering(namespace)
    return { taken: Math.max(taken, max), max, ...(deleted > 0 && { lingering: deleted }) }
  }

  function countAdmissible(objects: readonly T[]): number {
    let count = 0
    for (const [namespace, some = []] of Map.groupBy(objects, ({ metadata }) => metadata.namespace ?? '')) {
      const here = admittedIn(namespace)
      const unknown = some.filter(({ metadata }) => !here.has(metadata.uid)).length
      const free = Math.max(0, max - begunIn(namespace) - here.size)
      count += some.length - unknown + Math.min(unknown, free)
    }
    return count
  }

  function next(namespace: string): readonly Key[] {
    // Runs after each deletion: this call forgets the admissions of an empty namespace.
    admittedIn(namespace)
    const waiting = cache.byIndex('overQuota', namespace)
    const free = waiting.length === 0 ? 0 : max - begunIn(namespace)
    if (free <= 0) return []
    return waiting
      .toSorted((a, b) => byAge(a.metadata, b.metadata))
      .slice(0, free)
      .map(keyOf)
  }

  return { admit, countAdmissible, next }
}

type Born = Pick<ObjectMeta, 'creationTimestamp' | 'uid'>

const byAge = (a: Born, b: Born): number => order(a.creationTimestamp, b.creationTimestamp) || order(a.uid, b.uid)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Message of an object above the quota. `what` is the plural of the kind. */
export const fullMessage = ({ taken, max, lingering }: Full, what: string): string => {
  const deleted = lingering === undefined ? '' : `, ${lingering} of them deleted with data that could not be removed yet`
  return `the namespace has ${taken} ${what}${deleted}, and may have ${max}: delete one, or ask for a higher quota`
}

export interface QuotaIndexesOptions<T extends Limited> extends Pick<QuotaDeps<T>, 'hasBegun'> {
  /** Reason of the `Ready` condition of an object that waits because its namespace is full. */
  readonly reason: string
}

/** Indexes, by namespace, for the cache of a kind with a quota. */
export function quotaIndexes<T extends Limited>({ hasBegun, reason }: QuotaIndexesOptions<T>) {
  const isOver = isOverQuota(reason)
  return {
    unbegun: (object: T): readonly string[] => (hasBegun(object) ? [] : [object.metadata.namespace ?? '']),
    /** Objects whose status says that the quota is exceeded, and that may be admitted later. */
    overQuota: (object: T): readonly string[] =>
      hasBegun(object) || !isOver(object) || object.metadata.deletionTimestamp !== undefined
        ? []
        : [object.metadata.namespace ?? ''],
  }
}

/** Whether an object's status says that the quota is exceeded. */
export const isOverQuota =
  (reason: string) =>
  (object: Conditioned): boolean =>
    conditionOf(object, 'Ready')?.reason === reason

/** Delay in ms: objects deleted together are handled by one check of the waiting objects, which sorts all of them. */
const DELAY_MS = 50

/** Source of waiting objects that may be admitted since an object in their namespace was deleted, is being deleted, or was replaced. */
export function admissibleIn<K extends Kind>(cache: Cache<K>, quota: Pick<Quota<never>, 'next'>): Source {
  const namespaces = aspectChangesOf(cache, presenceOf, ({ namespace = '' }) => [{ name: namespace }])
  return eventsOf((enqueue) => laterThan(namespaces, DELAY_MS).subscribe(({ name }) => quota.next(name).forEach(enqueue)))
}

const presenceOf = ({ metadata: { uid, deletionTimestamp = '' } }: Resource<Kind>): string => `${uid} ${deletionTimestamp}`
