import { DatabaseServer } from '../../crds/database-server.ts'
import type { Motor } from '../../crds/motor.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { type Region, regionBefore, RegionReason } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { ignoringGone, isStoreError, type Key, keyOf, type Store } from '../../store/port.ts'
import type { Quota } from '../quota/quota.ts'
import type { Outcome } from '../runtime/controller.ts'
import { waitingFor } from '../shared-instance/indexes.ts'
import type { Slots } from '../shared-instance/slots.ts'
import { createIdleServers } from './idle-servers.ts'
import { nextServer, retiresInMs, serverName, usefulForMs } from './plan.ts'

export interface FleetDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly servers: Cache<typeof DatabaseServer>
  readonly instances: Cache<typeof SharedInstance>
  readonly slots: Slots
  readonly quota: Pick<Quota<SharedInstance>, 'countAdmissible'>
  /** Returns the maximum number of shared instances on one server of a motor. */
  readonly capacityOf: (motor: Motor) => number
  /** Whether the Namespace of the servers exists and stays. Default: it does. */
  readonly hasNamespace?: (() => boolean) | undefined
  readonly now: () => Date
}

type RegionMotor = Region['spec']['motors'][number]

/** Result for one motor. `againInMs`: times at which free slots or idle servers stop to count. */
interface MotorResult {
  readonly changed: 'ServerAdded' | 'ServerRetired' | undefined
  readonly againInMs: readonly number[]
}

/** Creates the reconciler of regions: it creates the shared servers that each motor's instances need, and deletes those without use. */
export function createFleetReconciler(deps: FleetDeps): (key: Key) => Promise<Outcome> {
  const { store, regions, servers, instances, slots, quota } = deps
  const idle = createIdleServers()

  async function add(motor: Motor, region: Region, ordinal: number): Promise<void> {
    try {
      await store.create(DatabaseServer, {
        metadata: {
          namespace: SHARED_NAMESPACE,
          name: serverName(motor, region.spec.regionId, ordinal),
          finalizers: [FINALIZER],
        },
        spec: { motor, region: region.spec.id, tenancy: 'shared', capacity: deps.capacityOf(motor) },
      })
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
  }

  /** Deletes a server without instances. From before the deletion on, no instance may choose it. */
  async function retire(server: DatabaseServer): Promise<void> {
    slots.retire(server)
    idle.forget(server)
    await ignoringGone(store.delete(DatabaseServer, keyOf(server), { uid: server.metadata.uid }))
  }

  async function reconcileMotor(region: Region, { id: motor, warm }: RegionMotor, now: number): Promise<MotorResult> {
    const mine = servers
      .list()
      .filter(({ spec }) => spec.region === region.spec.id && spec.motor === motor && spec.tenancy === 'shared')
    const useful = mine.map((server) => ({ server, forMs: usefulForMs(server, now) })).filter(({ forMs }) => forMs > 0)
    // Instances above their quota do not count, even before their status says so.
    const waiting = quota.countAdmissible(
      instances.byIndex('waiting', waitingFor(region.spec.id, motor)).filter(({ metadata }) => !slots.has(metadata.uid)),
    )
    const ordinals = new Set(mine.map(ordinalOf))
    const ordinal = nextServer({
      motor,
      warm,
      // A server takes a second or more to start, in which half of the slots of the last one can fill up.
      headroom: Math.ceil(deps.capacityOf(motor) / 2),
      free: useful.reduce((sum, { server }) => sum + slots.freeOn(server), 0),
      waiting,
      isTaken: (ordinal) =>
        ordinals.has(ordinal) || instances.byIndex('server', serverName(motor, region.spec.regionId, ordinal)).length > 0,
    })
    const ends = useful.map(({ forMs }) => forMs)
    if (ordinal !== undefined) {
      await add(motor, region, ordinal)
      return { changed: 'ServerAdded', againInMs: ends }
    }
    const living = mine.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    const retiring = living.map((server) => {
      const idleSince = idle.since(server, { isIdle: waiting === 0 && slots.isEmpty(server), now })
      const isOwn = serverName(motor, region.spec.regionId, ordinalOf(server)) === server.metadata.name
      return { server, inMs: retiresInMs({ warm, isOwn, idleSince }, now) }
    })
    const due = retiring.filter(({ inMs }) => inMs === 0)
    for (const { server } of due) await retire(server)
    const later = retiring.map(({ inMs }) => inMs).filter((ms) => ms > 0)
    return { changed: due.length > 0 ? 'ServerRetired' : undefined, againInMs: [...ends, ...later] }
  }

  return async function reconcileFleet(key) {
    const region = regions.get(key)
    if (!region) return { result: 'settled', reason: 'Gone' }
    if (regionBefore(region, regions.list())) return { result: 'settled', reason: RegionReason.IdTaken }
    if (deps.hasNamespace?.() === false) return { result: 'settled', reason: 'NamespaceMissing' }
    const now = deps.now().getTime()
    const results: MotorResult[] = []
    for (const motor of region.spec.motors) results.push(await reconcileMotor(region, motor, now))
    const soonest = Math.min(...results.flatMap(({ againInMs }) => againInMs))
    return {
      result: 'settled',
      reason: results.find(({ changed }) => changed)?.changed ?? 'Enough',
      ...(Number.isFinite(soonest) && { requeueAfterMs: soonest }),
    }
  }
}

const ordinalOf = ({ metadata: { name } }: DatabaseServer): number => Number(name.slice(name.lastIndexOf('-') + 1))
