/** How waiting times grow. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/**
 * Milliseconds to wait after `failures` failures in a row (1 or more): `baseMs` doubled each time, at most `maxMs`, of which the upper half
 * is random, so that many who failed together do not come back together.
 */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number, random: () => number = Math.random): number {
  const full = Math.min(maxMs, baseMs * 2 ** (failures - 1))
  return full / 2 + (full / 2) * random()
}
