import type { Kind, ObjectMeta } from '../../crds/kind.ts'
import type { Key, ListOptions } from '../port.ts'

/** An object of any kind as it lies in the store: plain JSON, deeply frozen. */
export interface Stored {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

/** What a write does to one object. `object` is the state after it, or the last one when it is deleted. */
export interface Change {
  readonly kind: Kind
  readonly type: 'added' | 'modified' | 'deleted'
  readonly object: Stored
  readonly previous: Stored | undefined
  readonly revision: number
}

/** `sharedinstances.mooring.dev`, `secrets`: names a kind on disk and in tables. */
export const kindId = (kind: Pick<Kind, 'plural' | 'group'>): string =>
  kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`

export const keyOf = ({ metadata }: Stored): Key => ({ namespace: metadata.namespace, name: metadata.name })

/** A copy that shares nothing with `value` and holds what JSON can hold; undefined members are dropped. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** RFC 3339 UTC in whole seconds, as Kubernetes writes times into metadata. */
export const wholeSeconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`

/** Whether an object is in the part of a collection that the options name. */
export function isSelected({ metadata }: Stored, { namespace, labels = {} }: ListOptions): boolean {
  if (namespace !== undefined && metadata.namespace !== namespace) return false
  return Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value)
}
