import { MooringError } from '../../shared/errors.ts'
import type { Kind } from '../../crds/kind.ts'
import type { Cache } from '../../store/cache.ts'
import { StoreCode } from '../../store/errors.ts'
import type { Key } from '../../store/port.ts'
import type { Events } from './events.ts'

/** Reason of the event about a reconcile that threw. */
export const RECONCILE_FAILED = 'ReconcileFailed'

/** Tells what a reconcile of an object of `cache` threw. That another writer was quicker is no failure. */
export function toldBy(events: Events, cache: Cache<Kind>): (key: Key, error: unknown) => void {
  return function tell(key, error) {
    const object = cache.get(key)
    if (!object || (error instanceof MooringError && error.code === StoreCode.conflict)) return
    // What else was thrown may quote what it was given, a password included.
    const note =
      error instanceof MooringError ? `${error.code}: ${error.message}` : 'unexpected error: the log of the operator says more'
    events.failure({ kind: cache.kind, metadata: object.metadata, reason: RECONCILE_FAILED, note })
  }
}
