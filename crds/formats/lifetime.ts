import { z } from 'zod'
import type { ObjectMeta } from '../kind.ts'

/** What a status says of that end. */
export const endStatus = z
  .string()
  .max(32)
  .optional()
  .describe('When it stops being accepted, in UTC: what it wishes for, within its bound.')

/**
 * When an object ends that may live for `lifeMs` at the most, whatever its wish `expiresAt` (RFC 3339) says: milliseconds since the epoch.
 * Kubernetes sets `creationTimestamp` itself, so nobody can put it off. Pure.
 */
export function endWithin(
  lifeMs: number,
  { creationTimestamp }: Pick<ObjectMeta, 'creationTimestamp'>,
  expiresAt: string,
): number {
  const wished = Date.parse(expiresAt)
  const latest = Date.parse(creationTimestamp) + lifeMs
  // The store knows only the second: whoever wished for just that long, late within it, wished for no more.
  return wished < latest + SECOND_MS ? wished : latest
}

const SECOND_MS = 1_000
