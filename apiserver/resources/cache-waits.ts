import type { Kind, Resource } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { type Conditioned, conditionOf } from '../../store/conditions.ts'
import { ApiError } from '../http/errors.ts'
import { nounOf } from './names-and-times.ts'

/** Default time budget of a request that waits for its result, in milliseconds. */
export const WAIT_MS = 25_000

const found = { found: true } as const

/** Wait that rejects once another wait cannot succeed any more; never resolves. */
export type Blocker = (signal: AbortSignal) => Promise<never>

/**
 * Waits until the cache has the object, so that the caller's next request finds it. `blocker` ends the wait when the owner of the object is deleted:
 * then the cache may never get the object.
 * @throws ApiError `unavailable`; the error of `blocker`
 */
export async function untilKnown<K extends Kind>(cache: Cache<K>, object: Resource<K>, blocker?: Blocker): Promise<void> {
  const isIt = (now: Resource<K> | undefined) => (now?.metadata.uid === object.metadata.uid ? found : undefined)
  const known = (signal: AbortSignal) => cache.waitFor(object.metadata, isIt, signal)
  await inTime(WAIT_MS, (signal) => firstOf(signal, blocker ? [known, blocker] : [known]))
}

/** Returns a blocker that rejects with ApiError `conflict` and `message` once this object, which the cache has, is being deleted or is gone. */
export function rejectWhenDeleted<K extends Kind>(cache: Cache<K>, { metadata }: Resource<K>, message: string): Blocker {
  const check = (now: Resource<K> | undefined): undefined => {
    if (now?.metadata.uid !== metadata.uid || now.metadata.deletionTimestamp !== undefined)
      throw new ApiError('conflict', message)
  }
  return (signal) => cache.waitFor<never>(metadata, check, signal)
}

/**
 * Waits until this object is ready or has one of the `final` reasons, and returns it. The operator writes nothing after that, so the caller can use its
 * resourceVersion in `If-Match`.
 * @throws ApiError `unavailable`; `conflict` when another request deletes the object
 */
export async function untilReady<K extends Kind>(
  cache: Cache<K>,
  object: Resource<K>,
  final: readonly string[] = [],
): Promise<Resource<K>> {
  let seen = false
  const check = (now: Resource<K> | undefined): Resource<K> | undefined => {
    const isIt = now?.metadata.uid === object.metadata.uid
    if (seen && !isIt)
      throw new ApiError('conflict', `another request deleted this ${nounOf(cache.kind)} while it was being created`)
    seen = isIt
    const condition = now && isIt ? conditionOf(now as Conditioned, 'Ready') : undefined
    return condition && (condition.status === 'True' || final.includes(condition.reason)) ? now : undefined
  }
  return inTime(WAIT_MS, (signal) => cache.waitFor(object.metadata, check, signal))
}

/** Maximum wait for the operator to observe a change that is already in force, in milliseconds. */
const SETTLE_MS = 2_000

/**
 * Waits until the status of this object has its generation and `isLater` holds, and returns the object: its resourceVersion is then stable, so the
 * caller can use it in `If-Match`. Returns the given object when that takes longer than 2 s.
 */
export async function settled<K extends Kind>(
  cache: Cache<K>,
  object: Resource<K>,
  isLater: (now: Resource<K>) => boolean = () => true,
): Promise<Resource<K>> {
  const { uid, generation } = object.metadata
  const check = (now: Resource<K> | undefined): Resource<K> | undefined => {
    if (now?.metadata.uid !== uid || !isLater(now)) return undefined
    return (conditionOf(now as Conditioned, 'Ready')?.observedGeneration ?? 0) >= generation ? now : undefined
  }
  return (await withinBudget(SETTLE_MS, (signal) => cache.waitFor(object.metadata, check, signal))) ?? object
}

/** Resolves once this object is gone from the cache. @throws the reason of the signal when it aborts */
export function whenGone<K extends Kind>(cache: Cache<K>, { metadata }: Resource<K>, signal: AbortSignal): Promise<object> {
  return cache.waitFor(metadata, (now) => (now?.metadata.uid === metadata.uid ? undefined : { gone: true }), signal)
}

/** Waits until this object is gone from the cache. @throws ApiError `unavailable` */
export async function untilGone<K extends Kind>(cache: Cache<K>, object: Resource<K>, ms = WAIT_MS): Promise<void> {
  await inTime(ms, (signal) => whenGone(cache, object, signal))
}

/** Waits until `holds` is true; checked now and at each change in the cache. @throws ApiError `unavailable` */
export async function untilAny<K extends Kind>(cache: Cache<K>, holds: () => boolean, ms = WAIT_MS): Promise<void> {
  await inTime(ms, (signal) => untilHolds(cache, () => (holds() ? found : undefined), signal))
}

/** Resolves with the first result of `lookUp`, called now and at each change in the cache. @throws the reason of the signal when it aborts */
function untilHolds<K extends Kind, T extends object>(
  cache: Cache<K>,
  lookUp: () => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const check = (): void => {
      const result = lookUp()
      if (!result) return
      stop()
      resolve(result)
    }
    const stop = cache.onChange(check)
    signal.addEventListener('abort', () => {
      stop()
      reject(signal.reason as Error)
    })
    check()
  })
}

async function inTime<T extends object>(ms: number, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const result = await withinBudget(ms, wait)
  if (result) return result
  throw new ApiError('unavailable', 'the change is accepted and still in progress; read the resource again in a few seconds')
}

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

/**
 * Runs `wait` with a signal that aborts after `ms`. Other errors of `wait` are thrown.
 * @returns undefined when the time ran out first
 */
export async function withinBudget<T extends object>(
  ms: number,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController()
  const timeout = new Error('the time budget is used up')
  const timer = setTimeout(() => controller.abort(timeout), ms)
  try {
    return await wait(controller.signal)
  } catch (error) {
    if (error === timeout) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as the first of several waits does, then aborts the signal that the other waits got. */
export async function firstOf<T>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<T>)[]): Promise<T> {
  const settled = new AbortController()
  const either = AbortSignal.any([signal, settled.signal])
  try {
    return await Promise.race(waits.map((wait) => wait(either)))
  } finally {
    settled.abort()
  }
}

/** Rejects with the reason of the signal when it aborts; never resolves. For a race with a promise that ignores the signal. */
export function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}
