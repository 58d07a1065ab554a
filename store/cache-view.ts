import type { Kind, Resource } from '../crds/kind.ts'
import { keyOf, keyToString } from './key-string.ts'
import type { Key, ListOptions } from './port.ts'
import { isOlder } from './revision.ts'

/** Index name → the values an object is found under. */
export type Indexes<K extends Kind> = Readonly<Record<string, (object: Resource<K>) => readonly string[]>>

/** Objects of one kind by key, uid, namespace and index. Writers learn which keys changed by what they did. */
export interface CacheView<K extends Kind> {
  get(key: Key): Resource<K> | undefined
  byUid(uid: string): Resource<K> | undefined
  list(options: ListOptions): readonly Resource<K>[]
  /** @throws TypeError for an index that does not exist */
  byIndex(index: string, value: string): readonly Resource<K>[]
  /** How many `list` would give, without a copy of them. */
  count(options: Pick<ListOptions, 'namespace'>): number
  /** How many `byIndex` would give. */
  countByIndex(index: string, value: string): number
  /** Returns whether the view changed: it does not for what it has already, or for an older state of the same object. */
  put(object: Resource<K>): boolean
  /** Returns whether the view changed: it does not when it holds nothing, or a successor of the same name. */
  remove(object: Resource<K>): boolean
  /** Makes the view hold exactly `items`. Returns the keys that appeared, changed or went. */
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
    // A uid never comes back, so its deletion is final whatever its revision; another uid may be the successor.
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
    if (!found) throw new TypeError(`the cache was made without an index ${name}`)
    return found
  }

  function list({ namespace, labels }: ListOptions): readonly Resource<K>[] {
    const objects = namespace === undefined ? [...byKey.values()] : byNamespace.get(namespace)
    if (!labels) return objects
    const wanted = Object.entries(labels)
    return objects.filter(({ metadata }) => wanted.every(([name, value]) => metadata.labels?.[name] === value))
  }

  return {
    get: (key) => byKey.get(keyToString(key)),
    byUid: (uid) => byUid.get(uid),
    list,
    byIndex: (index, value) => indexOf(index).get(value),
    count: ({ namespace }) => (namespace === undefined ? byKey.size : byNamespace.count(namespace)),
    countByIndex: (index, value) => indexOf(index).count(value),
    ...{ put, remove, replace },
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
