import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import { firstOf, withinBudget } from '../http/budget.ts'
import { ApiError } from '../http/errors.ts'

/** What a request waits for at the most, when the contract wants the result in its answer. */
export const WAIT_MS = 25_000

const found = { found: true } as const

/** Waits for what makes another wait useless, and throws then; never resolves. */
export type Hindrance = (signal: AbortSignal) => Promise<never>

/**
 * Waits until the cache has the object, so that the caller's next request finds it. With `unless`, no longer than that lasts: what went with
 * what it belongs to, before the cache had it, would be waited for in vain.
 * @throws ApiError `unavailable`; what `unless` throws
 */
export async function untilKnown<K extends Kind>(cache: Cache<K>, object: Resource<K>, unless?: Hindrance): Promise<void> {
  const isIt = (now: Resource<K> | undefined) => (now?.metadata.uid === object.metadata.uid ? found : undefined)
  const known = (signal: AbortSignal) => cache.waitFor(object.metadata, isIt, signal)
  await inTime(WAIT_MS, (signal) => firstOf(signal, unless ? [known, unless] : [known]))
}

/** The end of this very object, which the cache has: that it is being deleted, or gone. @throws ApiError `conflict` with the message */
export function endOf<K extends Kind>(cache: Cache<K>, { metadata }: Resource<K>, message: string): Hindrance {
  const look = (now: Resource<K> | undefined): undefined => {
    if (now?.metadata.uid !== metadata.uid || now.metadata.deletionTimestamp !== undefined)
      throw new ApiError('conflict', message)
  }
  return (signal) => cache.waitFor<never>(metadata, look, signal)
}

/**
 * Waits until this very object is ready, or has a reason after which waiting is of no use, and gives it as it is then: the operator
 * writes nothing more of its own accord, so that its resourceVersion is one to come back with.
 * @throws ApiError `unavailable`, `conflict` when somebody deletes it meanwhile
 */
export async function untilReady<K extends Kind>(
  cache: Cache<K>,
  object: Resource<K>,
  final: readonly string[] = [],
): Promise<Resource<K>> {
  let seen = false
  const look = (now: Resource<K> | undefined): Resource<K> | undefined => {
    const isIt = now?.metadata.uid === object.metadata.uid
    if (seen && !isIt) throw new ApiError('conflict', 'another request deleted this while it was being created')
    seen = isIt
    const verdict = now && isIt ? conditionOf(now as Conditioned, 'Ready') : undefined
    return verdict && (verdict.status === 'True' || final.includes(verdict.reason)) ? now : undefined
  }
  return inTime(WAIT_MS, (signal) => cache.waitFor(object.metadata, look, signal))
}

/** How long an answer waits for the operator to have taken note of a change that is in force without it. */
const SETTLE_MS = 2_000

/**
 * This very object, or a later one of which `isLater` holds, once its status speaks of this generation: nothing is about to move its
 * resourceVersion, which is one to come back with. As it was given when that takes longer than a moment.
 */
export async function settled<K extends Kind>(
  cache: Cache<K>,
  object: Resource<K>,
  isLater: (now: Resource<K>) => boolean = () => true,
): Promise<Resource<K>> {
  const { uid, generation } = object.metadata
  const look = (now: Resource<K> | undefined): Resource<K> | undefined => {
    if (now?.metadata.uid !== uid || !isLater(now)) return undefined
    return (conditionOf(now as Conditioned, 'Ready')?.observedGeneration ?? 0) >= generation ? now : undefined
  }
  return (await withinBudget(SETTLE_MS, (signal) => cache.waitFor(object.metadata, look, signal))) ?? object
}

/** Resolves once this very object is gone from the cache. @throws the signal's reason when it aborts */
export function whenGone<K extends Kind>(cache: Cache<K>, { metadata }: Resource<K>, signal: AbortSignal): Promise<object> {
  return cache.waitFor(metadata, (now) => (now?.metadata.uid === metadata.uid ? undefined : { gone: true }), signal)
}

/** Waits until this very object is gone from the cache. @throws ApiError `unavailable` */
export async function untilGone<K extends Kind>(cache: Cache<K>, object: Resource<K>, ms = WAIT_MS): Promise<void> {
  await inTime(ms, (signal) => whenGone(cache, object, signal))
}

/** Waits until `holds`, asked now and at each change of any object in the cache. @throws ApiError `unavailable` */
export async function untilAny<K extends Kind>(cache: Cache<K>, holds: () => boolean, ms = WAIT_MS): Promise<void> {
  await inTime(ms, (signal) => untilHolds(cache, () => (holds() ? found : undefined), signal))
}

/** Resolves with what `look` finds, asked now and at each change of any object in the cache. @throws the signal's reason when it aborts */
export function untilHolds<K extends Kind, T extends object>(
  cache: Cache<K>,
  look: () => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const again = (): void => {
      const result = look()
      if (!result) return
      stop()
      resolve(result)
    }
    const stop = cache.onChange(again)
    signal.addEventListener('abort', () => {
      stop()
      reject(signal.reason as Error)
    })
    again()
  })
}

async function inTime<T extends object>(ms: number, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const result = await withinBudget(ms, wait)
  if (result) return result
  throw new ApiError('unavailable', 'the change is accepted and still under way; read the resource again in a few seconds')
}
