import type { ObjectMeta } from '../../crds/kind.ts'
import type { Conditioned } from '../../store/conditions.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'

/** An object of a kind that has a quota. */
export interface Limited extends Conditioned {
  readonly metadata: ObjectMeta
}

export interface QuotaDeps<T extends Limited> {
  /** With the indexes of indexes.ts, by the same `hasBegun`. */
  readonly cache: {
    count(options: { readonly namespace: string }): number
    byIndex(index: string, value: string): readonly T[]
    countByIndex(index: string, value: string): number
    byUid(uid: string): T | undefined
  }
  /** In one namespace. */
  readonly max: number
  /** Whether an object has what the quota is about: it goes on, whatever the quota says. */
  readonly hasBegun: (object: T) => boolean
}

/** A namespace that has as many as it may have, or more, since a quota may be lowered. */
export interface Full {
  readonly taken: number
  readonly max: number
}

/**
 * Limits the objects of a kind in a namespace, whoever makes them: those that have begun, then the oldest of the others. Writes nothing.
 * Who is let in is known here until the cache shows that it has begun: two may be of the same second, and the one that comes first by its
 * uid may come into view last.
 */
export interface Quota<T extends Limited> {
  /** Lets an object of the cache that has not begun in, from now on, or says how full its namespace is. */
  admit(object: T): Full | undefined
  /** Of some that have not begun: how many are let in, or may be with those that there are now. */
  countAdmissible(objects: readonly T[]): number
  /** The oldest of those in a namespace that were told that it is full, as many as it may have room for by now. */
  next(namespace: string): readonly Key[]
}

export function createQuota<T extends Limited>({ cache, max, hasBegun }: QuotaDeps<T>): Quota<T> {
  /** Uids of those let in, by namespace. */
  const admitted = new Map<string, Set<string>>()

  /** Those of them that the cache does not show as begun. */
  function admittedIn(namespace: string): Set<string> {
    const uids = admitted.get(namespace) ?? new Set<string>()
    for (const uid of uids) {
      const object = cache.byUid(uid)
      if (!object || hasBegun(object)) uids.delete(uid)
    }
    if (uids.size === 0) admitted.delete(namespace)
    return uids
  }

  const begunIn = (namespace: string): number => cache.count({ namespace }) - cache.countByIndex('unbegun', namespace)

  function admit(object: T): Full | undefined {
    const { namespace = '', uid } = object.metadata
    if (admitted.get(namespace)?.has(uid)) return undefined
    const others = admittedIn(namespace)
    const isSmall = cache.count({ namespace }) <= max
    const full = isSmall ? undefined : fullFor(object, others)
    if (!full) admitted.set(namespace, others.add(uid))
    return full
  }

  function fullFor({ metadata }: T, others: ReadonlySet<string>): Full | undefined {
    const { namespace = '' } = metadata
    const taken = begunIn(namespace) + others.size
    const room = max - taken
    let older = 0
    // Of thousands that wait, each is asked about: in a full namespace they are not even listed, in another not sorted.
    if (room > 0) {
      for (const { metadata: other } of cache.byIndex('unbegun', namespace)) {
        const isBefore = other.deletionTimestamp === undefined && !others.has(other.uid) && byAge(other, metadata) < 0
        if (isBefore) older += 1
        if (older === room) break
      }
    }
    return older < room ? undefined : { taken: Math.max(taken, max), max }
  }

  function countAdmissible(objects: readonly T[]): number {
    let count = 0
    for (const [namespace, some = []] of Map.groupBy(objects, ({ metadata }) => metadata.namespace ?? '')) {
      const here = admittedIn(namespace)
      const unknown = some.filter(({ metadata }) => !here.has(metadata.uid)).length
      const room = Math.max(0, max - begunIn(namespace) - here.size)
      count += some.length - unknown + Math.min(unknown, room)
    }
    return count
  }

  function next(namespace: string): readonly Key[] {
    // Asked when one has gone: what is remembered of a namespace that nothing comes to any more goes with the last.
    admittedIn(namespace)
    const waiting = cache.byIndex('overQuota', namespace)
    const room = waiting.length === 0 ? 0 : max - begunIn(namespace)
    if (room <= 0) return []
    return waiting
      .toSorted((a, b) => byAge(a.metadata, b.metadata))
      .slice(0, room)
      .map(keyOf)
  }

  return { admit, countAdmissible, next }
}

type Born = Pick<ObjectMeta, 'creationTimestamp' | 'uid'>

const byAge = (a: Born, b: Born): number => order(a.creationTimestamp, b.creationTimestamp) || order(a.uid, b.uid)

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** What an object says that waits for room. `what` in the plural. */
export const fullMessage = ({ taken, max }: Full, what: string): string =>
  `the namespace has ${taken} ${what}, and may have ${max}: delete one, or ask for a higher quota`
