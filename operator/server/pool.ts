import type { DatabaseServer } from '../../crds/database-server.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins } from './admins.ts'

export interface PoolDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the index `server`: the DatabaseServer of an instance. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  /** Spare databases per server. */
  readonly size: number
}

/** Interval of retries for a server whose status is ready but which has no admin connection yet. */
const RETRY_MS = 1_000

/**
 * Creates the reconciler that keeps the warm pool of one server full, with one unit of work per call, so that other work waits only
 * shortly. Triggered when the server comes up and when an instance on it appears or is deleted.
 */
export function createPoolReconciler({ servers, instances, admins, size }: PoolDeps): (key: Key) => Promise<Outcome> {
  return async function reconcilePool(key) {
    const server = servers.get(key)
    const open = admins.get(key.name)
    if (server?.spec.tenancy === 'internal') return { result: 'settled', reason: 'NoTenants' }
    if (!server || !isReady(server) || server.metadata.deletionTimestamp !== undefined)
      return { result: 'waiting', reason: 'ServerNotReady' }
    // After a start of the operator, finding that a server is up changes no object, so no event triggers this reconcile.
    if (!open) return { result: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: RETRY_MS }
    const free = Math.max(0, server.spec.capacity - instances.countByIndex('server', key.name))
    const more = await open.admin.tidy(Math.min(size, free))
    return more ? { result: 'waiting', reason: 'Filling', requeueAfterMs: 1 } : { result: 'settled', reason: 'Full' }
  }
}
