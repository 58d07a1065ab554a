import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, keyToString } from '../../store/key-string.ts'
import type { Key } from '../../store/port.ts'

/** Something that wakes a controller. */
export interface Source {
  /** Resolves when it may be asked, and when reconciling may rely on what it shows. */
  synced(): Promise<void>
  /** Keys of the first pass. */
  initial(): readonly Key[]
  /** Calls `enqueue` with each key that a change concerns. Returns how to stop that. */
  subscribe(enqueue: (key: Key) => void): () => void
}

/** The objects of the kind that is reconciled: all of them at first, then each that changes. */
export function objectsOf<K extends Kind>(cache: Cache<K>): Source {
  return {
    synced: () => cache.synced(),
    initial: () => cache.list().map(keyOf),
    subscribe: (enqueue) => cache.onChange(enqueue),
  }
}

/**
 * Objects that a change of another kind concerns; `concerned` maps the key of what changed to theirs. What it needs to know of a deleted
 * object must follow from its key. Adds nothing to the first pass, which has every object anyway.
 */
export function changesOf<K extends Kind>(cache: Cache<K>, concerned: (changed: Key) => readonly Key[]): Source {
  return {
    synced: () => cache.synced(),
    initial: () => [],
    subscribe: (enqueue) => cache.onChange((changed) => concerned(changed).forEach(enqueue)),
  }
}

/**
 * The same, of objects that came, went, or of which `aspect` is another than before: for what concerns many, and would be woken by each word
 * that is written into a status.
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

/** The same for as long as nobody wishes for something else of an object (Kubernetes, "API conventions": `generation`). */
export const wishOf = ({ metadata: { uid, generation, deletionTimestamp = '' } }: Resource<Kind>): string =>
  `${uid} ${generation} ${deletionTimestamp}`

/** The same, `ms` milliseconds later: for work that must not be in the way of whoever waits for the change itself. */
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

/** Keys that come from elsewhere than a cache, such as a process that ended. */
export function eventsOf(subscribe: Source['subscribe']): Source {
  return { synced: () => Promise.resolve(), initial: () => [], subscribe }
}
