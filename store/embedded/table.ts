import type { Kind } from '../../crds/kind.ts'
import type { Key } from '../port.ts'
import { kindId, type Stored } from './object.ts'

/** Objects of one kind and namespace, ordered by name. */
type Bucket = Stored[]

/** Returns the index of `name` in the bucket, or the index to insert it at. */
function indexIn(bucket: Bucket, name: string): number {
  let low = 0
  let high = bucket.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((bucket[middle]?.metadata.name ?? '') < name) low = middle + 1
    else high = middle
  }
  return low
}

/** All objects of a store at one revision, by kind, namespace and name; sorted, so that `list` is a copy. */
export class Table {
  readonly #kinds: Map<string, Map<string, Bucket>>

  constructor(kinds = new Map<string, Map<string, Bucket>>()) {
    this.#kinds = kinds
  }

  get(kind: Kind, { namespace = '', name }: Key): Stored | undefined {
    const bucket = this.#kinds.get(kindId(kind))?.get(namespace)
    const found = bucket?.[indexIn(bucket, name)]
    return found?.metadata.name === name ? found : undefined
  }

  /** Returns a new array of the objects of a kind, or of those in one namespace, ordered by namespace, then name. */
  list(kind: Kind, namespace?: string): Stored[] {
    const buckets = this.#kinds.get(kindId(kind))
    if (!buckets) return []
    if (namespace !== undefined) return buckets.get(namespace)?.slice() ?? []
    const names = [...buckets.keys()].sort((a, b) => (a < b ? -1 : 1))
    return names.flatMap((name) => buckets.get(name) ?? [])
  }

  /** Inserts the object, or replaces an older one of the same name. */
  put(kind: Kind, object: Stored): void {
    const { namespace = '', name } = object.metadata
    const bucket = this.#bucket(kindId(kind), namespace)
    const index = indexIn(bucket, name)
    bucket.splice(index, bucket[index]?.metadata.name === name ? 1 : 0, object)
  }

  remove(kind: Kind, { namespace = '', name }: Key): void {
    const buckets = this.#kinds.get(kindId(kind))
    const bucket = buckets?.get(namespace)
    if (!bucket) return
    const index = indexIn(bucket, name)
    if (bucket[index]?.metadata.name === name) bucket.splice(index, 1)
    if (bucket.length === 0) buckets?.delete(namespace)
  }

  /** Returns a second table of the same objects. */
  clone(): Table {
    const copy = new Map<string, Map<string, Bucket>>()
    for (const [id, buckets] of this.#kinds) copy.set(id, new Map([...buckets].map(([name, bucket]) => [name, bucket.slice()])))
    return new Table(copy)
  }

  #bucket(id: string, namespace: string): Bucket {
    let buckets = this.#kinds.get(id)
    if (!buckets) this.#kinds.set(id, (buckets = new Map<string, Bucket>()))
    let bucket = buckets.get(namespace)
    if (!bucket) buckets.set(namespace, (bucket = []))
    return bucket
  }
}
