import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { withinBudget } from '../resources/time-budget.ts'
import { whenGone } from '../resources/cache-waits.ts'
import { claimOutcome, claimTimeout, deletedMeanwhile } from './instance-outcome.ts'

export interface InstanceWaitsDeps {
  readonly instances: Cache<typeof SharedInstance>
  /** Time budget of a request in milliseconds, except for a deletion. */
  readonly changeMs: number
  readonly deleteMs: number
}

/**
 * Waits on the cache without polling. An object of the same name with another uid does not count. The time budget starts at `arrivedAt`, the
 * arrival of the request (`performance.now()`).
 */
export interface InstanceWaits {
  /**
   * Waits until the database of a new instance works.
   * @throws ApiError when the operator rejects it, another request deletes it, or the time budget is used up
   */
  claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance>
  /** Waits until `settled` holds; undefined when the time budget is used up. @throws ApiError `conflict` when the instance is deleted */
  changed(
    changed: SharedInstance,
    settled: (now: SharedInstance) => boolean,
    arrivedAt: number,
  ): Promise<SharedInstance | undefined>
  /** Waits until the object is gone from the store; false when the time budget is used up. */
  gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean>
}

/** Returns the remaining milliseconds of a budget; a wait of 0 still checks the cache once. */
const left = (ms: number, arrivedAt: number): number => Math.max(0, ms - (performance.now() - arrivedAt))

export function createInstanceWaits({ instances, changeMs, deleteMs }: InstanceWaitsDeps): InstanceWaits {
  /** Returns a check for `waitFor` that ignores the cache until it has the object, and throws once the object is gone. */
  function follow<T>(
    of: SharedInstance,
    resultOf: (now: SharedInstance) => T | undefined,
  ): (now?: SharedInstance) => T | undefined {
    let seen = false
    return function check(now) {
      const isIt = now?.metadata.uid === of.metadata.uid
      if (!isIt && seen) throw deletedMeanwhile()
      if (!isIt) return undefined
      seen = true
      return resultOf(now)
    }
  }

  async function claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance> {
    const check = follow(created, claimOutcome)
    const ready = await withinBudget(left(changeMs, arrivedAt), (signal) => instances.waitFor(created.metadata, check, signal))
    if (ready) return ready
    throw claimTimeout(instances.byUid(created.metadata.uid))
  }

  async function changed(...[of, settled, arrivedAt]: Parameters<InstanceWaits['changed']>): Promise<SharedInstance | undefined> {
    const check = follow(of, (now) => (settled(now) ? now : undefined))
    return withinBudget(left(changeMs, arrivedAt), (signal) => instances.waitFor(of.metadata, check, signal))
  }

  async function gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean> {
    const outcome = await withinBudget(left(deleteMs, arrivedAt), (signal) => whenGone(instances, deleted, signal))
    return outcome !== undefined
  }

  return { claimed, changed, gone }
}
