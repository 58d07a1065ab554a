import type { ObjectMeta } from '../crds/kind.ts'
import { annotations } from '../crds/names.ts'

/** Converts a Kubernetes time (whole seconds) to the form of the API: RFC 3339, UTC, milliseconds. */
export function withMilliseconds(timestamp: string): string {
  return new Date(timestamp).toISOString()
}

const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

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
