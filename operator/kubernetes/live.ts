import type { Kind, Resource } from '../../crds/kind.ts'
import { createCache } from '../../store/cache.ts'
import { keyToString, type Key, type ListOptions, type Store } from '../../store/port.ts'
import { isOlder } from '../../store/cache-view.ts'

export interface LiveDeps<K extends Kind> {
  readonly store: Store
  readonly kind: K
  readonly scope: ListOptions
  readonly onError: (error: unknown) => void
  readonly onChange: (key: Key) => void
}

/** Current objects of one kind: followed by a watch, and never older than what was {@link Live.remember remembered}. */
export interface Live<K extends Kind> {
  /** Follows until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when all objects present at the start are known. */
  synced(): Promise<void>
  get(key: Key): Resource<K> | undefined
  /** Remembers the response to an own write until the watch brings it. */
  remember(object: Resource<K>): void
}

export function createLive<K extends Kind>({ store, kind, scope, onError, onChange }: LiveDeps<K>): Live<K> {
  const cache = createCache({ store, kind, scope, onError })
  const written = new Map<string, Resource<K>>()

  cache.onChange((key) => {
    const mine = written.get(keyToString(key))
    const seen = cache.get(key)
    // An own write that the watch has reached, or whose object the watch has seen deleted, is no longer needed.
    if (mine && (!seen || !isOlder(seen.metadata.resourceVersion, mine.metadata.resourceVersion)))
      written.delete(keyToString(key))
    onChange(key)
  })

  return {
    run: (signal) => cache.run(signal),
    synced: () => cache.synced(),
    get: (key) => written.get(keyToString(key)) ?? cache.get(key),
    remember(object) {
      const seen = cache.get(object.metadata)
      if (seen && !isOlder(seen.metadata.resourceVersion, object.metadata.resourceVersion)) return
      written.set(keyToString(object.metadata), object)
    },
  }
}
