import type { Kind, ObjectMeta } from '../../crds/kind.ts'
import { type Key, type ListOptions, deepFreeze } from '../port.ts'
import { InvalidObjectError, validate } from '../../shared/validate.ts'
import type { Contents, Row } from './sqlite.ts'

/** Object of any kind as the store keeps it: plain JSON, deeply frozen. */
export interface Stored {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

/** Change of one object. `object` is the new state, or the last state of a deleted object. */
export interface Change {
  readonly kind: Kind
  readonly type: 'added' | 'modified' | 'deleted'
  readonly object: Stored
  readonly previous: Stored | undefined
  readonly revision: number
}

/** Objects of one kind and namespace, ordered by name. */
type Bucket = Stored[]

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

/** Returns the name of a kind on disk and in tables: `sharedinstances.mooring.dev`, `secrets`. */
export const kindId = (kind: Pick<Kind, 'plural' | 'group'>): string =>
  kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`

/** Returns a deep copy of a JSON value, without undefined members. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Formats a time as RFC 3339 UTC in whole seconds, as in Kubernetes' metadata. */
export const wholeSeconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`

/** Whether an object is in the namespace and has the labels of the options. */
export function isSelected({ metadata }: Stored, { namespace, labels = {} }: ListOptions): boolean {
  if (namespace !== undefined && metadata.namespace !== namespace) return false
  return Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value)
}

interface Warner {
  warn(details: object, message: string): void
}

/** Builds the table from the contents of the file, and the same objects as changes. Objects of unknown kinds stay on disk but are ignored. */
export function loadTable(
  kinds: readonly Kind[],
  { rows, revision }: Contents,
  logger?: Warner,
): { readonly table: Table; readonly changes: readonly Change[] } {
  const known = new Map(kinds.map((kind) => [kindId(kind), kind]))
  const table = new Table()
  const changes: Change[] = []
  const unknownKinds = new Set<string>()
  const read = (kind: Kind, row: Row): Stored => deepFreeze(defaulted(kind, JSON.parse(row.body) as Stored))
  for (const row of rows) {
    const kind = known.get(row.kind)
    if (!kind) {
      unknownKinds.add(row.kind)
      continue
    }
    const object = read(kind, row)
    table.put(kind, object)
    changes.push({ kind, type: 'added', object, previous: undefined, revision })
  }
  if (unknownKinds.size > 0) logger?.warn({ kinds: [...unknownKinds] }, 'the state has objects of unknown kinds')
  return { table, changes }
}

/** Adds defaults to an object, like an API server on reads: defaults of a newer schema also apply to older objects. */
function defaulted(kind: Kind, object: Stored): Stored {
  try {
    const { apiVersion, kind: name, metadata } = object
    return { apiVersion, kind: name, metadata, ...validate(kind, object) }
  } catch (error) {
    // Written under an older schema: it can still be read, repaired or deleted.
    if (error instanceof InvalidObjectError) return object
    throw error
  }
}
