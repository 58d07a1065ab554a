import { z } from 'zod'
import type { ObjectMeta } from '../kind.ts'

/** JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** Whether a value is a JSON object: neither null nor a list. */
export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Schema of a map with at most `maxEntries` entries. zod has no such bound: `refine` checks it, `meta` puts it into the generated schema. */
export function boundedMap<V extends z.ZodType>(key: z.ZodString, value: V, maxEntries: number): z.ZodRecord<z.ZodString, V> {
  return z
    .record(key, value)
    .refine((map) => Object.keys(map).length <= maxEntries, { error: `at most ${maxEntries} entries` })
    .meta({ maxProperties: maxEntries })
}

/** Schema of `status.expiresAt`: the time that {@link endWithin} returns. */
export const endStatus = z
  .string()
  .max(32)
  .optional()
  .describe('Effective time of expiry, in UTC: the earlier of `spec.expiresAt` and the end of the maximum lifetime.')

/**
 * Returns the expiry of an object in milliseconds since the epoch: `expiresAt` (RFC 3339), at most `lifeMs` after its creation.
 * Kubernetes itself sets `creationTimestamp`, so no client can postpone the expiry. Pure.
 */
export function endWithin(
  lifeMs: number,
  { creationTimestamp }: Pick<ObjectMeta, 'creationTimestamp'>,
  expiresAt: string,
): number {
  const requested = Date.parse(expiresAt)
  const latest = Date.parse(creationTimestamp) + lifeMs
  // creationTimestamp has whole seconds: a request for exactly `lifeMs`, made late in its second, may exceed `latest` by less than a second.
  return requested < latest + SECOND_MS ? requested : latest
}

const SECOND_MS = 1_000
