import type { Kind, Resource } from '../crds/kind.ts'
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
  list(options?: ListOptions): readonly Resource<K>[]
  /** Objects whose index function gave `value`; index names are fixed when the cache is made. */
  byIndex(index: string, value: string): readonly Resource<K>[]
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
  readonly indexes?: Readonly<Record<string, (object: Resource<K>) => readonly string[]>>
  readonly onError?: (error: unknown) => void
}
