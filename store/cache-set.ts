import type { Kind } from '../crds/kind.ts'
import { type Cache, type CacheDeps, createCache } from './cache.ts'
import type { Store } from './port.ts'

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
