import type { ObjectMeta } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { withMilliseconds } from '../http/rfc3339.ts'

const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Returns the creation time annotation of a new object. */
export function createdNow(now: Date): { readonly [annotations.createdAt]: string } {
  return { [annotations.createdAt]: now.toISOString() }
}

/**
 * Returns the creation time of an object: RFC 3339, UTC, milliseconds. The store has whole seconds; the annotation adds the milliseconds if it has
 * the same second, and is ignored otherwise.
 */
export function createdAtOf({
  creationTimestamp,
  annotations: own,
}: Pick<ObjectMeta, 'creationTimestamp' | 'annotations'>): string {
  const stamp = own?.[annotations.createdAt] ?? ''
  const second = withMilliseconds(creationTimestamp)
  return FORM.test(stamp) && stamp.slice(0, 19) === second.slice(0, 19) ? stamp : second
}
