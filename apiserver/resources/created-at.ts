import type { ObjectMeta } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'
import { withMilliseconds } from '../http/rfc3339.ts'

const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The annotation of an object about to be created. */
export function createdNow(now: Date): { readonly [annotations.createdAt]: string } {
  return { [annotations.createdAt]: now.toISOString() }
}

/**
 * When an object was created: RFC 3339, UTC, milliseconds. The store knows the second; the milliseconds are the annotation's where it names
 * that second. One that does not (another clock, a second that passed on the way, somebody's own text) does not count.
 */
export function createdAtOf({
  creationTimestamp,
  annotations: own,
}: Pick<ObjectMeta, 'creationTimestamp' | 'annotations'>): string {
  const stamp = own?.[annotations.createdAt] ?? ''
  const second = withMilliseconds(creationTimestamp)
  return FORM.test(stamp) && stamp.slice(0, 19) === second.slice(0, 19) ? stamp : second
}
