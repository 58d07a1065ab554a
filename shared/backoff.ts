/** Bounds of an exponential back-off, in milliseconds. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Returns the delay in milliseconds after `failures` consecutive failures (1 or more): `baseMs`, doubled per further failure, at most `maxMs`.
 * The upper half of the delay is random, so that clients that failed at the same time do not retry at the same time.
 */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number, random: () => number = Math.random): number {
  const full = Math.min(maxMs, baseMs * 2 ** (failures - 1))
  return full / 2 + (full / 2) * random()
}
