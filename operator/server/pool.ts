import type { DatabaseServer } from '../../crds/database-server.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import type { Key } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'
import type { Admins } from './admins.ts'

export interface PoolDeps {
  readonly servers: Cache<typeof DatabaseServer>
  /** With an index `server`: the DatabaseServer an instance lives on. */
  readonly instances: Cache<typeof SharedInstance>
  readonly admins: Admins
  /** Spare databases on a server. */
  readonly size: number
}

/** How soon a server that its status calls ready is tried again while there is no way in yet. */
const LOOK_AGAIN_MS = 1_000

/**
 * Keeps the warm pool of one server full, one unit of work a reconcile, so that other work is never far behind. Woken when the server
 * comes up and when an instance on it appears or goes.
 */
export function createPoolReconciler({ servers, instances, admins, size }: PoolDeps): (key: Key) => Promise<Outcome> {
  return async function reconcilePool(key) {
    const server = servers.get(key)
    const open = admins.get(key.name)
    if (server?.spec.tenancy === 'internal') return { verdict: 'settled', reason: 'NoTenants' }
    if (!server || !isReady(server) || server.metadata.deletionTimestamp !== undefined)
      return { verdict: 'waiting', reason: 'ServerNotReady' }
    // After a start of the operator a server that is up is found to be so, and changes nothing that would wake anybody.
    if (!open) return { verdict: 'waiting', reason: 'ServerNotOpen', requeueAfterMs: LOOK_AGAIN_MS }
    const free = Math.max(0, server.spec.capacity - instances.countByIndex('server', key.name))
    const more = await open.admin.tidy(Math.min(size, free))
    return more ? { verdict: 'waiting', reason: 'Filling', requeueAfterMs: 1 } : { verdict: 'settled', reason: 'Full' }
  }
}
