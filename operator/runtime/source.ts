import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, keyToString, type Key } from '../../store/port.ts'

/** Source of keys that a controller reconciles. */
export interface Source {
  /** Resolves when the source is complete, so that reconciles may rely on it. */
  synced(): Promise<void>
  /** Keys of the first pass. */
  initial(): readonly Key[]
  /** Calls `enqueue` with each key that a change concerns. @returns a function that unsubscribes */
  subscribe(enqueue: (key: Key) => void): () => void
}

/** Source of the objects of the reconciled kind: all of them at first, then each that changes. */
export function objectsOf<K extends Kind>(cache: Cache<K>): Source {
  return {
    synced: () => cache.synced(),
    initial: () => cache.list().map(keyOf),
    subscribe: (enqueue) => cache.onChange(enqueue),
  }
}

/**
 * Source of objects that a change of another kind concerns. `concerned` maps the key of the changed object to their keys; for a deleted
 * object it has the key alone. The first pass has no keys, as it covers every object anyway.
 */
export function changesOf<K extends Kind>(cache: Cache<K>, concerned: (changed: Key) => readonly Key[]): Source {
  return {
    synced: () => cache.synced(),
    initial: () => [],
    subscribe: (enqueue) => cache.onChange((changed) => concerned(changed).forEach(enqueue)),
  }
}

/**
 * Like {@link changesOf}, restricted to objects that appeared, were deleted, or whose `aspect` changed. For kinds that concern many
 * objects: a change of their status wakes none of them.
 */
export function aspectChangesOf<K extends Kind>(
  cache: Cache<K>,
  aspect: (object: Resource<K>) => string,
  concerned: (changed: Key) => readonly Key[],
): Source {
  return {
    ...changesOf(cache, concerned),
    subscribe(enqueue) {
      const seen = new Map(cache.list().map((object) => [keyToString(object.metadata), aspect(object)]))
      return cache.onChange((changed) => {
        const id = keyToString(changed)
        const object = cache.get(changed)
        const now = object && aspect(object)
        const isSame = now !== undefined && now === seen.get(id)
        if (now === undefined) seen.delete(id)
        else seen.set(id, now)
        if (!isSame) concerned(changed).forEach(enqueue)
      })
    },
  }
}

/** Like {@link changesOf}, restricted to objects that appeared or were deleted. */
export const existenceOf = <K extends Kind>(cache: Cache<K>, concerned: (changed: Key) => readonly Key[]): Source =>
  aspectChangesOf(cache, ({ metadata }) => metadata.uid, concerned)

/** Aspect that changes with the spec and with the mark of a deletion (Kubernetes, "API conventions": `generation`). */
export const specOf = ({ metadata: { uid, generation, deletionTimestamp = '' } }: Resource<Kind>): string =>
  `${uid} ${generation} ${deletionTimestamp}`

/** Delays a source by `ms` milliseconds, for work that must not delay the handling of the change itself. */
export function laterThan(source: Source, ms: number): Source {
  return {
    ...source,
    subscribe(enqueue) {
      const timers = new Map<string, NodeJS.Timeout>()
      const unsubscribe = source.subscribe((key) => {
        const id = keyToString(key)
        const due = () => {
          timers.delete(id)
          enqueue(key)
        }
        if (!timers.has(id)) timers.set(id, setTimeout(due, ms))
      })
      return () => {
        unsubscribe()
        for (const timer of timers.values()) clearTimeout(timer)
      }
    },
  }
}

/** Source of keys that do not come from a cache, such as a process that ended. */
export function eventsOf(subscribe: Source['subscribe']): Source {
  return { synced: () => Promise.resolve(), initial: () => [], subscribe }
}
