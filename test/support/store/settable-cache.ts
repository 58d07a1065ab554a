import type { Kind, Resource } from '../../../crds/kind.ts'
import type { Cache } from '../../../store/cache.ts'
import { createCacheView, type Indexes } from '../../../store/cache-view.ts'

export interface SettableCache<K extends Kind> {
  readonly cache: Cache<K>
  put(...objects: readonly Resource<K>[]): void
  remove(object: Resource<K>): void
}

/** Creates a cache whose content a test sets, for code that reads a cache without waiting. */
export function settableCache<K extends Kind>(kind: K, indexes?: Indexes<K>): SettableCache<K> {
  const view = createCacheView(indexes)
  return {
    put: (...objects) => objects.forEach((object) => view.put(object)),
    remove: (object) => void view.remove(object),
    cache: {
      kind,
      run: () => Promise.resolve(),
      synced: () => Promise.resolve(),
      get: (key) => view.get(key),
      byUid: (uid) => view.byUid(uid),
      list: (options = {}) => view.list(options),
      byIndex: (index, value) => view.byIndex(index, value),
      count: (options = {}) => view.count(options),
      countByIndex: (index, value) => view.countByIndex(index, value),
      onChange: () => () => undefined,
      waitFor: () => Promise.reject(new Error('nobody may wait on a settable cache')),
    },
  }
}
