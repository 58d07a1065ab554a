import { Organization } from '../../../crds/organization.ts'
import { type Cache, type CacheDeps, createCache } from '../../../store/cache.ts'
import type { Store } from '../../../store/port.ts'
import { createVirtualClock, type VirtualClock } from '../virtual-clock.ts'

export interface RunningCache extends AsyncDisposable {
  readonly cache: Cache<typeof Organization>
  readonly clock: VirtualClock
  readonly errors: unknown[]
}

/** Runs a cache over `store` in virtual time until disposed. */
export function startCache(store: Store, options: Partial<CacheDeps<typeof Organization>> = {}): RunningCache {
  const clock = createVirtualClock()
  const errors: unknown[] = []
  const stop = new AbortController()
  const onError = (error: unknown) => {
    errors.push(error)
  }
  const cache = createCache({ store, kind: Organization, clock, random: () => 0.5, onError, ...options })
  const ended = cache.run(stop.signal)
  const dispose = async () => {
    stop.abort()
    await ended
  }
  return { cache, clock, errors, [Symbol.asyncDispose]: dispose }
}
