const FIRST_MS = 250
const LONGEST_MS = 30_000

/** How long to wait, in ms, before a server is started again after its `failures`-th failure in a row (1 = the first). */
export function backoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
}
