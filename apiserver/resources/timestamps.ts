import { z } from 'zod'
import type { ObjectMeta } from '../../crds/kind.ts'
import { annotations } from '../../crds/names.ts'

/** Time in a body, of any zone; stored and shown in UTC. */
export const Time = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time, e.g. 2026-01-02T03:04:05Z' })

/** Converts a Kubernetes time (whole seconds) to the form of the API: RFC 3339, UTC, milliseconds. */
export function withMilliseconds(timestamp: string): string {
  return new Date(timestamp).toISOString()
}

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
