import { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { isStoreError, type Key, type Store } from '../../store/port.ts'
import type { Quota } from '../quota/quota.ts'
import type { Outcome } from '../runtime/controller.ts'
import { waitingFor } from '../shared-instance/indexes.ts'
import type { Slots } from '../shared-instance/slots.ts'
import { nextServer, serverName, usefulForMs } from './plan.ts'

export interface FleetDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly servers: Cache<typeof DatabaseServer>
  readonly instances: Cache<typeof SharedInstance>
  readonly slots: Slots
  readonly quota: Pick<Quota<SharedInstance>, 'countAdmissible'>
  /** Maximum number of shared instances on one server. */
  readonly capacity: number
  readonly now: () => Date
}

/** Creates the reconciler of regions: it creates the shared servers that each motor's instances need. */
export function createFleetReconciler(deps: FleetDeps): (key: Key) => Promise<Outcome> {
  const { store, regions, servers, instances, slots, quota } = deps

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
    if (!region) return { result: 'settled', reason: 'Gone' }
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
        // A server takes a second or more to start, in which half of the slots of the last one can fill up.
        headroom: Math.ceil(deps.capacity / 2),
        free: useful.reduce((sum, { server }) => sum + slots.freeOn(server), 0),
        // Instances above their quota do not count, even before their status says so.
        waiting: quota.countAdmissible(
          instances.byIndex('waiting', waitingFor(region.spec.id, motor)).filter(({ metadata }) => !slots.has(metadata.uid)),
        ),
        ordinals: names.map((name) => Number(name.slice(name.lastIndexOf('-') + 1))),
      })
      if (ordinal === undefined) continue
      await add(motor, region, ordinal)
      added = true
    }
    const soonest = Math.min(...again)
    return {
      result: 'settled',
      reason: added ? 'ServerAdded' : 'Enough',
      ...(Number.isFinite(soonest) && { requeueAfterMs: soonest }),
    }
  }
}
