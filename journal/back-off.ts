/** How waiting times grow. */
export interface BackOff {
  readonly firstMs: number
  readonly lastMs: number
}

/**
 * Milliseconds to wait after `failures` failures in a row (1 or more): `firstMs`, twice as long each time, at most `lastMs`; of that the
 * upper half is random (`random`: 0 to 1), so that many who failed together do not come back together.
 */
export function backOffMs({ firstMs, lastMs }: BackOff, failures: number, random: () => number = Math.random): number {
  const longest = Math.min(lastMs, firstMs * 2 ** (failures - 1))
  return longest * (0.5 + random() / 2)
}
