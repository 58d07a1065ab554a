import type { DatabaseServer } from '../../crds/database-server.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins } from './admins.ts'
import type { Discarded } from './discarded.ts'

/** Interval of trying again while a ready server has no admin connection yet. */
const RETRY_MS = 1_000

interface PoolDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the index `server`: the DatabaseServer of an instance. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  readonly discarded: Pick<Discarded, 'record' | 'countOn'>
  /** Spare databases per server. */
  readonly size: number
}

/** Interval of trying to remove discarded databases that could not be removed. */
const REMOVAL_MS = 5_000

/**
 * Creates the reconciler that keeps the warm pool of one server full, with one unit of work per call, so that other work waits only
 * shortly. Triggered when the server comes up and when an instance on it appears or is deleted.
 */
export function createPoolReconciler({ servers, instances, admins, discarded, size }: PoolDeps): (key: Key) => Promise<Outcome> {
  return async function reconcilePool(key) {
    const server = servers.get(key)
    const open = admins.get(key.name)
    if (server?.spec.tenancy === 'internal') return { result: 'settled', reason: 'NoTenants' }
    if (!server || !isReady(server) || server.metadata.deletionTimestamp !== undefined)
      return { result: 'waiting', reason: 'ServerNotReady' }
    // After a start of the operator, finding that a server is up changes no object, so no event triggers this reconcile.
    if (!open) return { result: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: RETRY_MS }
    const used = instances.countByIndex('server', key.name) + discarded.countOn(key.name)
    const free = Math.max(0, server.spec.capacity - used)
    // The database of a dedicated server is made once.
    const spare = server.spec.tenancy === 'dedicated' ? 0 : Math.min(size, free)
    const more = await open.admin.tidy(spare)
    const left = await open.admin.discarded()
    discarded.record(key.name, left)
    if (more) return { result: 'waiting', reason: 'Filling', requeueAfterMs: 1 }
    if (left.length > 0) return { result: 'waiting', reason: 'Removing', requeueAfterMs: REMOVAL_MS }
    return { result: 'settled', reason: 'Full' }
  }
}
