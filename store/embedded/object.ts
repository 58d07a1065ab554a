import type { Kind, ObjectMeta } from '../../crds/kind.ts'
import type { Key, ListOptions } from '../port.ts'

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

/** Returns the name of a kind on disk and in tables: `sharedinstances.mooring.dev`, `secrets`. */
export const kindId = (kind: Pick<Kind, 'plural' | 'group'>): string =>
  kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`

export const keyOf = ({ metadata }: Stored): Key => ({ namespace: metadata.namespace, name: metadata.name })

/** Returns a deep copy of a JSON value, without undefined members. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Formats a time as RFC 3339 UTC in whole seconds, as in Kubernetes' metadata. */
export const wholeSeconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`

/** Whether an object is in the namespace and has the labels of the options. */
export function isSelected({ metadata }: Stored, { namespace, labels = {} }: ListOptions): boolean {
  if (namespace !== undefined && metadata.namespace !== namespace) return false
  return Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value)
}
