import type { Kind, Resource } from '../crds/kind.ts'
import type { Backoff, Clock } from '../shared/timers.ts'
import { createCacheView, type Indexes } from './cache-view.ts'
import { follow, type ObjectEvent } from './follow.ts'
import { keyOf, type Key, type ListOptions, type Store, keyToString } from './port.ts'

/**
 * Copy of all objects of one kind, kept current by one list and one watch for all readers. Handlers get keys, never objects,
 * and should only enqueue them; errors of handlers are reported and ignored. A watch that fails, ends or is silent for too long is restarted
 * with back-off and jitter, from a new list when its revision is gone.
 */
export interface Cache<K extends Kind> {
  readonly kind: K
  /** Lists and watches until `signal` aborts, then resolves. Never rejects. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the cache has its first list. */
  synced(): Promise<void>
  get(key: Key): Resource<K> | undefined
  byUid(uid: string): Resource<K> | undefined
  /** Returns objects in no particular order. */
  list(options?: ListOptions): readonly Resource<K>[]
  /** Returns the objects whose index function returned `value`. @throws TypeError for an index that the cache was not created with */
  byIndex(index: string, value: string): readonly Resource<K>[]
  /** Returns the length of `list(options)` in constant time. */
  count(options?: Pick<ListOptions, 'namespace'>): number
  /** Returns the length of `byIndex(index, value)` in constant time. */
  countByIndex(index: string, value: string): number
  /** Calls `handler` with the key of each object that was added, changed or removed. Returns a function that unregisters it. */
  onChange(handler: (key: Key) => void): () => void
  /**
   * Calls `select` now and at each change of the object until it returns a value other than undefined, and resolves with that value.
   * The argument of `select` is undefined while the object does not exist. An error thrown by `select` rejects.
   * @throws the signal's reason when it aborts first
   */
  waitFor<T>(key: Key, select: (object: Resource<K> | undefined) => T | undefined, signal: AbortSignal): Promise<T>
}

export interface CacheDeps<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly scope?: ListOptions
  readonly indexes?: Indexes<K>
  /** Called with every error of a list or watch (each is retried) and of a handler. */
  readonly onError?: (error: unknown) => void
  /** Delays between attempts. Default: 100 ms to 5 s. */
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
}

/** Creates a {@link Cache}. It reads nothing before `run`. */
export function createCache<K extends Kind>(deps: CacheDeps<K>): Cache<K> {
  const { kind, onError = () => undefined } = deps
  const view = createCacheView(deps.indexes)
  const waiters = createKeyWaiters()
  const handlers = new Set<(key: Key) => void>()
  const firstList = Promise.withResolvers<undefined>()

  function announce(key: Key): void {
    for (const handler of [...handlers]) {
      try {
        handler(key)
      } catch (error) {
        onError(error)
      }
    }
    waiters.notify(key)
  }

  function onList(items: readonly Resource<K>[]): void {
    const keys = view.replace(items)
    firstList.resolve(undefined)
    keys.forEach(announce)
  }

  function onEvent({ type, object }: ObjectEvent<K>): void {
    const changed = type === 'deleted' ? view.remove(object) : view.put(object)
    if (changed) announce(keyOf(object))
  }

  function onChange(handler: (key: Key) => void): () => void {
    // Wrapped, so that the same function can be registered twice.
    const registered = (key: Key) => {
      handler(key)
    }
    handlers.add(registered)
    return () => {
      handlers.delete(registered)
    }
  }

  return {
    kind,
    run: (signal) => follow({ ...deps, onError, onList, onEvent }, signal),
    synced: () => firstList.promise,
    get: (key) => view.get(key),
    byUid: (uid) => view.byUid(uid),
    list: (options = {}) => view.list(options),
    byIndex: (index, value) => view.byIndex(index, value),
    count: (options = {}) => view.count(options),
    countByIndex: (index, value) => view.countByIndex(index, value),
    onChange,
    waitFor: (key, select, signal) => waiters.wait(key, () => select(view.get(key)), signal),
  }
}

/** Caches of one process, which are created one by one, then run and awaited together. */
export interface CacheSet {
  /** Creates the cache of a kind. */
  readonly cached: <K extends Kind>(kind: K, indexes?: CacheDeps<K>['indexes']) => Cache<K>
  /** Runs all caches until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when every cache has its first list. */
  synced(): Promise<void>
}

/** Creates an empty set. `onError` is called with each error of a list or watch; the cache retries by itself. */
export function createCacheSet({ store, onError }: { store: Store; onError: (error: unknown) => void }): CacheSet {
  const members: Pick<Cache<Kind>, 'run' | 'synced'>[] = []
  return {
    cached(kind, indexes) {
      const cache = createCache({ store, kind, onError, ...(indexes && { indexes }) })
      members.push(cache)
      return cache
    },
    async run(signal) {
      await Promise.all(members.map((cache) => cache.run(signal)))
    },
    async synced() {
      await Promise.all(members.map((cache) => cache.synced()))
    },
  }
}

/** Waiters for changes of single keys. A change costs only the waiters of its own key. */
interface KeyWaiters {
  /**
   * Calls `attempt` now and at each `notify` of the key until it returns a value other than undefined, and resolves with that value.
   * @throws the error of `attempt`, or the signal's reason when it aborts first
   */
  wait<T>(key: Key, attempt: () => T | undefined, signal: AbortSignal): Promise<T>
  notify(key: Key): void
}

function createKeyWaiters(): KeyWaiters {
  const waiting = new Map<string, Set<() => void>>()

  function subscribe(key: string, retry: () => void): () => void {
    const retries = waiting.get(key) ?? new Set()
    waiting.set(key, retries.add(retry))
    return () => {
      if (retries.delete(retry) && retries.size === 0) waiting.delete(key)
    }
  }

  function wait<T>(key: Key, attempt: () => T | undefined, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const first = attempt()
      if (first !== undefined) {
        resolve(first)
        return
      }
      const stop = () => {
        unsubscribe()
        signal.removeEventListener('abort', onAbort)
      }
      const onAbort = () => {
        stop()
        reject(signal.reason as Error)
      }
      const retry = () => {
        try {
          const result = attempt()
          if (result === undefined) return
          resolve(result)
        } catch (error) {
          reject(error instanceof Error ? error : new TypeError('a value that is not an Error was thrown', { cause: error }))
        }
        stop()
      }
      // In the same turn as the first attempt, so that no change is missed.
      const unsubscribe = subscribe(keyToString(key), retry)
      signal.addEventListener('abort', onAbort)
    })
  }

  function notify(key: Key): void {
    for (const retry of [...(waiting.get(keyToString(key)) ?? [])]) retry()
  }

  return { wait, notify }
}
