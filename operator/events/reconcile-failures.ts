import { MooringError } from '../../shared/errors.ts'
import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { StoreCode } from '../../store/errors.ts'
import type { Key } from '../../store/port.ts'
import type { Events } from './events.ts'

/** Reason of the event about a reconcile that threw. */
export const RECONCILE_FAILED = 'ReconcileFailed'

/** Creates a handler that reports the error of a failed reconcile of an object of `cache`. Write conflicts are not reported. */
export function reporterOf(events: Events, cache: Cache<Kind>): (key: Key, error: unknown) => void {
  return function report(key, error) {
    const object = cache.get(key)
    if (!object || (error instanceof MooringError && error.code === StoreCode.conflict)) return
    // Foreign errors may quote their input, a password included.
    const note =
      error instanceof MooringError ? `${error.code}: ${error.message}` : 'unexpected error: see the log of the operator'
    events.failure({ kind: cache.kind, metadata: object.metadata, reason: RECONCILE_FAILED, note })
  }
}
