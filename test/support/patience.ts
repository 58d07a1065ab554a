/**
 * Factor by which all waits of tests are longer than on a quiet machine, from `MOORING_TEST_SLOWNESS`. A wait ends as soon as its
 * condition holds, so a large factor costs time only when a test fails.
 */
const SLOWNESS = Number(process.env.MOORING_TEST_SLOWNESS ?? 4)

/** Returns the bound of a wait in milliseconds that takes `ms` at most on a quiet machine. */
export const patient = (ms: number): number => ms * SLOWNESS

/** Wait for a condition that holds within moments: `vi.waitFor(…, SOON)`, `expect.poll(…, SOON)`. */
export const SOON = { timeout: patient(15_000), interval: 50 }

/** Wait for a condition that needs several processes or a periodic check, such as a new pod or a sweep. */
export const LATER = { timeout: patient(60_000), interval: 200 }

/** Argument of `kubectl wait`, `delete` and `rollout status`: as long as `LATER`. */
export const KUBECTL_WAIT = `--timeout=${LATER.timeout / 1_000}s`
