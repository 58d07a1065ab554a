/** Whether the full run is under way, which has time for long and random tests. */
export const IS_FULL = process.env.MOORING_TEST_SCOPE === 'full'

/**
 * Returns a random seed, and prints it for a repetition. @param what name of the test
 */
export function randomSeed(what: string): number {
  const seed = Date.now()
  process.stdout.write(`${what}: seed ${seed}\n`)
  return seed
}
