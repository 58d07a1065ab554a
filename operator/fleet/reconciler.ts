import { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Quota } from '../quota/quota.ts'
import type { Outcome } from '../runtime/controller.ts'
import { waitingFor } from '../shared-instance/indexes.ts'
import type { Places } from '../shared-instance/places.ts'
import { nextServer, serverName, usefulForMs } from './plan.ts'

export interface FleetDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly servers: Cache<typeof DatabaseServer>
  readonly instances: Cache<typeof SharedInstance>
  readonly places: Places
  readonly quota: Pick<Quota<SharedInstance>, 'countAdmissible'>
  /** Shared instances on one server. */
  readonly capacity: number
  readonly now: () => Date
}

/** Sees to it that a region has as many shared servers of each motor as its instances need. */
export function createFleetReconciler(deps: FleetDeps): (key: Key) => Promise<Outcome> {
  const { store, regions, servers, instances, places, quota } = deps

  async function add(motor: Motor, region: Region, ordinal: number): Promise<void> {
    try {
      await store.create(DatabaseServer, {
        metadata: {
          namespace: SHARED_NAMESPACE,
          name: serverName(motor, region.spec.regionId, ordinal),
          finalizers: [FINALIZER],
        },
        spec: { motor, region: region.spec.id, tenancy: 'shared', capacity: deps.capacity },
      })
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
  }

  return async function reconcileFleet(key) {
    const region = regions.get(key)
    if (!region) return { verdict: 'settled', reason: 'Gone' }
    const now = deps.now().getTime()
    const again: number[] = []
    let added = false
    for (const { id: motor, warm } of region.spec.motors) {
      const mine = servers
        .list()
        .filter(({ spec }) => spec.region === region.spec.id && spec.motor === motor && spec.tenancy === 'shared')
      const names = mine.map(({ metadata }) => metadata.name)
      const useful = mine.map((server) => ({ server, forMs: usefulForMs(server, now) })).filter(({ forMs }) => forMs > 0)
      again.push(...useful.map(({ forMs }) => forMs))
      const ordinal = nextServer({
        motor,
        warm,
        // A server takes a second or more to start, in which half of the one before can fill up.
        headroom: Math.ceil(deps.capacity / 2),
        free: useful.reduce((sum, { server }) => sum + places.freeOn(server), 0),
        // No server is started for those that their quota will keep out, and that nobody has told so yet.
        waiting: quota.countAdmissible(
          instances.byIndex('waiting', waitingFor(region.spec.id, motor)).filter(({ metadata }) => !places.has(metadata.uid)),
        ),
        ordinals: names.map((name) => Number(name.slice(name.lastIndexOf('-') + 1))),
      })
      if (ordinal === undefined) continue
      await add(motor, region, ordinal)
      added = true
    }
    const soonest = Math.min(...again)
    return {
      verdict: 'settled',
      reason: added ? 'ServerAdded' : 'Enough',
      ...(Number.isFinite(soonest) && { requeueAfterMs: soonest }),
    }
  }
}
