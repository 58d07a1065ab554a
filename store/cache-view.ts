import type { Kind, Resource } from '../crds/kind.ts'
import { keyOf, keyToString, type Key, type ListOptions } from './port.ts'

/** Index name → function that returns the index values of an object. */
export type Indexes<K extends Kind> = Readonly<Record<string, (object: Resource<K>) => readonly string[]>>

/** Objects of one kind by key, uid, namespace and index. Writing functions report which keys changed. */
export interface CacheView<K extends Kind> {
  get(key: Key): Resource<K> | undefined
  byUid(uid: string): Resource<K> | undefined
  list(options: ListOptions): readonly Resource<K>[]
  /** @throws TypeError for an index that does not exist */
  byIndex(index: string, value: string): readonly Resource<K>[]
  /** Returns the length of `list(options)` without a copy of the list. */
  count(options: Pick<ListOptions, 'namespace'>): number
  /** Returns the length of `byIndex(index, value)`. */
  countByIndex(index: string, value: string): number
  /** Adds or updates an object. Returns false when the view has this state or a newer one of the same object. */
  put(object: Resource<K>): boolean
  /** Removes an object. Returns false when the view has no object of this name, or a later object of this name. */
  remove(object: Resource<K>): boolean
  /** Replaces the contents by `items`. Returns the keys of objects that were added, changed or removed. */
  replace(items: readonly Resource<K>[]): readonly Key[]
}

export function createCacheView<K extends Kind>(indexes: Indexes<K> = {}): CacheView<K> {
  const byKey = new Map<string, Resource<K>>()
  const byUid = new Map<string, Resource<K>>()
  const byNamespace = createIndex<K>(({ metadata }) => [metadata.namespace ?? ''])
  const named = new Map(Object.entries(indexes).map(([name, valuesOf]) => [name, createIndex(valuesOf)]))
  const all = [byNamespace, ...named.values()]

  function add(key: string, object: Resource<K>): void {
    byKey.set(key, object)
    byUid.set(object.metadata.uid, object)
    for (const index of all) index.add(object)
  }

  function drop(key: string, object: Resource<K>): void {
    byKey.delete(key)
    byUid.delete(object.metadata.uid)
    for (const index of all) index.drop(object)
  }

  function put(object: Resource<K>): boolean {
    const key = keyToString(object.metadata)
    const held = byKey.get(key)
    if (held && !supersedes(object, held)) return false
    if (held) drop(key, held)
    add(key, object)
    return true
  }

  function remove(object: Resource<K>): boolean {
    const key = keyToString(object.metadata)
    const held = byKey.get(key)
    // A uid is never reused, so its deletion is final at any revision. An object with another uid may be its successor.
    if (!held || (held.metadata.uid !== object.metadata.uid && isOlder(revisionOf(object), revisionOf(held)))) return false
    drop(key, held)
    return true
  }

  function replace(items: readonly Resource<K>[]): readonly Key[] {
    const listed = new Set(items.map(({ metadata }) => keyToString(metadata)))
    const gone = [...byKey].filter(([key]) => !listed.has(key))
    for (const [key, object] of gone) drop(key, object)
    return [...gone.map(([, object]) => object), ...items.filter(put)].map(keyOf)
  }

  function indexOf(name: string): Index<K> {
    const found = named.get(name)
    if (!found) throw new TypeError(`the cache has no index ${name}`)
    return found
  }

  function list({ namespace, labels }: ListOptions): readonly Resource<K>[] {
    const objects = namespace === undefined ? [...byKey.values()] : byNamespace.get(namespace)
    if (!labels) return objects
    const selected = Object.entries(labels)
    return objects.filter(({ metadata }) => selected.every(([name, value]) => metadata.labels?.[name] === value))
  }

  return {
    get: (key) => byKey.get(keyToString(key)),
    byUid: (uid) => byUid.get(uid),
    list,
    byIndex: (index, value) => indexOf(index).get(value),
    count: ({ namespace }) => (namespace === undefined ? byKey.size : byNamespace.count(namespace)),
    countByIndex: (index, value) => indexOf(index).count(value),
    put,
    remove,
    replace,
  }
}

const revisionOf = ({ metadata }: Resource<Kind>): string => metadata.resourceVersion

function supersedes(object: Resource<Kind>, held: Resource<Kind>): boolean {
  if (object.metadata.uid !== held.metadata.uid) return true
  return revisionOf(object) !== revisionOf(held) && !isOlder(revisionOf(object), revisionOf(held))
}

type Index<K extends Kind> = ReturnType<typeof createIndex<K>>

function createIndex<K extends Kind>(valuesOf: (object: Resource<K>) => readonly string[]) {
  const byValue = new Map<string, Map<string, Resource<K>>>()

  function add(object: Resource<K>): void {
    for (const value of valuesOf(object)) {
      const objects = byValue.get(value)
      if (objects) objects.set(object.metadata.uid, object)
      else byValue.set(value, new Map([[object.metadata.uid, object]]))
    }
  }

  function drop(object: Resource<K>): void {
    for (const value of valuesOf(object)) {
      const objects = byValue.get(value)
      objects?.delete(object.metadata.uid)
      if (objects?.size === 0) byValue.delete(value)
    }
  }

  const get = (value: string): readonly Resource<K>[] => [...(byValue.get(value)?.values() ?? [])]
  const count = (value: string): number => byValue.get(value)?.size ?? 0

  return { add, drop, get, count }
}

const DECIMAL = /^(0|[1-9]\d*)$/

/**
 * Whether resourceVersion `a` is certainly older than `b`. Revisions are opaque by contract, but decimal in practice: decimal revisions are
 * compared as numbers of any length; for others the result is false.
 */
export function isOlder(a: string, b: string): boolean {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return false
  return a.length === b.length ? a < b : a.length < b.length
}
