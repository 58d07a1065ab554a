import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { withinBudget } from '../http/budget.ts'
import { whenGone } from '../resources/cache-waits.ts'
import { claimOutcome, claimOverdue, deletedMeanwhile } from './instance-verdict.ts'

export interface InstanceWaitsDeps {
  readonly instances: Cache<typeof SharedInstance>
  /** Milliseconds a request waits for the operator, but for a deletion. */
  readonly changeMs: number
  readonly deleteMs: number
}

/**
 * Waits on the cache, never polls. Each is about the very object it is given: one of the same name with another uid is not it. The time is
 * counted from `arrivedAt`, when the request came (`performance.now()`): what it has done until now has taken some of it.
 */
export interface InstanceWaits {
  /**
   * Until the database of a new instance works.
   * @throws ApiError when it is refused, deleted meanwhile, or out of time
   */
  claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance>
  /** Until `settled` holds; undefined when the time is up. @throws ApiError `conflict` when the instance goes */
  changed(
    changed: SharedInstance,
    settled: (now: SharedInstance) => boolean,
    arrivedAt: number,
  ): Promise<SharedInstance | undefined>
  /** True once the object is gone from the store, false when the time is up. */
  gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean>
}

/** Milliseconds left of `ms` for a request that arrived then; the wait looks once even when there are none. */
const left = (ms: number, arrivedAt: number): number => Math.max(0, ms - (performance.now() - arrivedAt))

export function createInstanceWaits({ instances, changeMs, deleteMs }: InstanceWaitsDeps): InstanceWaits {
  /** What is at the object's place in the cache, with what that means: it may not have arrived yet, and it may be gone. */
  function follow<T>(
    of: SharedInstance,
    wanted: (now: SharedInstance) => T | undefined,
  ): (now?: SharedInstance) => T | undefined {
    let seen = false
    return function look(now) {
      const isIt = now?.metadata.uid === of.metadata.uid
      if (!isIt && seen) throw deletedMeanwhile()
      if (!isIt) return undefined
      seen = true
      return wanted(now)
    }
  }

  async function claimed(created: SharedInstance, arrivedAt: number): Promise<SharedInstance> {
    const look = follow(created, claimOutcome)
    const ready = await withinBudget(left(changeMs, arrivedAt), (signal) => instances.waitFor(created.metadata, look, signal))
    if (ready) return ready
    throw claimOverdue(instances.byUid(created.metadata.uid))
  }

  async function changed(...[of, settled, arrivedAt]: Parameters<InstanceWaits['changed']>): Promise<SharedInstance | undefined> {
    const look = follow(of, (now) => (settled(now) ? now : undefined))
    return withinBudget(left(changeMs, arrivedAt), (signal) => instances.waitFor(of.metadata, look, signal))
  }

  async function gone(deleted: SharedInstance, arrivedAt: number): Promise<boolean> {
    const outcome = await withinBudget(left(deleteMs, arrivedAt), (signal) => whenGone(instances, deleted, signal))
    return outcome !== undefined
  }

  return { claimed, changed, gone }
}
