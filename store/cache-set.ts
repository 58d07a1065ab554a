import type { Kind } from '../crds/kind.ts'
import { type Cache, type CacheDeps, createCache } from './cache.ts'
import type { Store } from './port.ts'

/** The caches of one process: made one by one, run and awaited together. */
export interface CacheSet {
  readonly cached: <K extends Kind>(kind: K, indexes?: CacheDeps<K>['indexes']) => Cache<K>
  /** Follows the store until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when each holds all that was there at the start. */
  synced(): Promise<void>
}

/** `onError` hears of each watch that broke and is started again. */
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
