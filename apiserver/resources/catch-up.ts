import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { withinBudget } from '../http/budget.ts'
import { untilHolds } from './cache-waits.ts'

/**
 * Looks an object up in a cache; when it is missing, repeats the lookup at each change until the time runs out.
 *
 * Another API server may have acknowledged a creation that this server's watch delivers milliseconds later, and a caller that creates through one
 * server and reads through another must find its object. Reading the store instead is no option: objects cannot be read by uid, and a full list for
 * each wrong id would let any caller load the cluster.
 */
export type CatchUp = <K extends Kind, T extends object>(cache: Cache<K>, lookUp: () => T | undefined) => Promise<T | undefined>

/** Upper bound of the watch delay in a healthy cluster, in milliseconds. */
export const BEHIND_MS = 500

/** Creates the lookup; `ms` is the maximum wait, 0 where no other process creates objects. */
export function createCatchUp(ms: number): CatchUp {
  return async function catchUp(cache, lookUp) {
    const found = lookUp()
    if (found || ms === 0) return found
    return withinBudget(ms, (signal) => untilHolds(cache, lookUp, signal))
  }
}
