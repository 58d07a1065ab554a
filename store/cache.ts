import type { Kind, Resource } from '../crds/kind.ts'
import type { Backoff } from '../shared/backoff.ts'
import { createCacheView, type Indexes } from './cache-view.ts'
import type { Clock } from './clock.ts'
import { follow, type ObjectEvent } from './follow.ts'
import { keyOf } from './key-string.ts'
import { createKeyWaiters } from './key-waiters.ts'
import type { Key, ListOptions, Store } from './port.ts'

/**
 * A shared, always-fresh copy of one kind: one list and one watch, however many readers. Handlers get keys, never objects,
 * and may only enqueue: what they throw is logged and ignored. A watch that fails, ends or goes silent is restarted with back-off and
 * jitter, from a new list when its revision is gone.
 */
export interface Cache<K extends Kind> {
  readonly kind: K
  /** Lists, then follows until `signal` aborts. Resolves at the end; never rejects. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves once the first list is in. */
  synced(): Promise<void>
  get(key: Key): Resource<K> | undefined
  byUid(uid: string): Resource<K> | undefined
  /** In no particular order. */
  list(options?: ListOptions): readonly Resource<K>[]
  /** Objects whose index function gave `value`; index names are fixed when the cache is made. */
  byIndex(index: string, value: string): readonly Resource<K>[]
  /** How many `list` would give, at the same cost whatever their number. */
  count(options?: Pick<ListOptions, 'namespace'>): number
  /** How many `byIndex` would give, in the same way. */
  countByIndex(index: string, value: string): number
  /** `handler` is called with the key of each object that appeared, changed or went. Returns how to stop that. */
  onChange(handler: (key: Key) => void): () => void
  /**
   * Resolves with what `wanted` returns as soon as that is not undefined, trying now and at each change of the object.
   * `wanted` gets undefined while the object is not there. A throw of `wanted` rejects.
   * @throws the signal's reason when it aborts first
   */
  waitFor<T>(key: Key, wanted: (object: Resource<K> | undefined) => T | undefined, signal: AbortSignal): Promise<T>
}

export interface CacheDeps<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly scope?: ListOptions
  /** Index name → the values an object is found under. */
  readonly indexes?: Indexes<K>
  /** Gets every failure of a list or watch (each is followed by another try) and whatever a handler throws. */
  readonly onError?: (error: unknown) => void
  /** Between tries; 100 ms to 5 s unless given. */
  readonly backoff?: Backoff
  readonly clock?: Clock
  readonly random?: () => number
}

/** Makes a {@link Cache}. Nothing is read before `run`. */
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
    // Wrapped, so that the same function may be registered twice.
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
    waitFor: (key, wanted, signal) => waiters.wait(key, () => wanted(view.get(key)), signal),
  }
}
