import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { withinBudget } from '../http/budget.ts'
import { untilHolds } from './cache-waits.ts'

/**
 * Looks something up in a cache; what is not there is looked for on at each change, until the time is up.
 *
 * Another API server may have acknowledged a creation that this one's watch brings a moment later: whoever creates by one and reads by the
 * other must not be told that there is nothing. An object cannot be read by its uid, and a list of all there are for each wrong id would be
 * a burden that any caller can put on the cluster. A watch is behind by milliseconds, so a short wait is enough, and costs a timer.
 */
export type CatchUp = <K extends Kind, T extends object>(cache: Cache<K>, look: () => T | undefined) => Promise<T | undefined>

/** What a watch of a healthy cluster is never behind by. */
export const BEHIND_MS = 500

/** `ms`: how far this process may be behind others; 0 where there are none. */
export function createCatchUp(ms: number): CatchUp {
  return async function catchUp(cache, look) {
    const found = look()
    if (found || ms === 0) return found
    return withinBudget(ms, (signal) => untilHolds(cache, look, signal))
  }
}
