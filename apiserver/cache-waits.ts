import type { Kind, Resource } from '../crds/kind.ts'
import type { Cache } from '../store/cache.ts'
import { withinBudget } from './budget.ts'
import { ApiError } from './errors.ts'

/** What a request waits for at the most, when the contract wants the result in its answer. */
export const WAIT_MS = 25_000

const found = { found: true } as const

/** Waits until the cache has the object, so that the caller's next request finds it. @throws ApiError `unavailable` */
export async function untilKnown<K extends Kind>(cache: Cache<K>, object: Resource<K>, ms = WAIT_MS): Promise<void> {
  const isIt = (now: Resource<K> | undefined) => (now?.metadata.uid === object.metadata.uid ? found : undefined)
  await inTime(ms, (signal) => cache.waitFor(object.metadata, isIt, signal))
}

/** Waits until this very object is gone from the cache. @throws ApiError `unavailable` */
export async function untilGone<K extends Kind>(cache: Cache<K>, object: Resource<K>, ms = WAIT_MS): Promise<void> {
  const isGone = (now: Resource<K> | undefined) => (now?.metadata.uid === object.metadata.uid ? undefined : found)
  await inTime(ms, (signal) => cache.waitFor(object.metadata, isGone, signal))
}

/** Waits until `holds`, asked now and at each change of any object in the cache. @throws ApiError `unavailable` */
export async function untilAny<K extends Kind>(cache: Cache<K>, holds: () => boolean, ms = WAIT_MS): Promise<void> {
  await inTime(ms, (signal) => change(cache, holds, signal))
}

function change<K extends Kind>(cache: Cache<K>, holds: () => boolean, signal: AbortSignal): Promise<typeof found> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (!holds()) return
      stop()
      resolve(found)
    }
    const stop = cache.onChange(look)
    signal.addEventListener('abort', () => {
      stop()
      reject(signal.reason as Error)
    })
    look()
  })
}

async function inTime(ms: number, wait: (signal: AbortSignal) => Promise<typeof found>): Promise<void> {
  if (await withinBudget(ms, wait)) return
  throw new ApiError('unavailable', 'this is not finished yet; it goes on, so look again soon')
}
