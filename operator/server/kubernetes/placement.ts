import { MooringError } from '../../../shared/errors.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { partsOf } from '../../../crds/motor.ts'
import type { Plan } from '../../../crds/plan.ts'
import { EXPOSURES, type Region } from '../../../crds/region.ts'
import type { ServerState } from '../runtime.ts'
import { ENGINE_PODS } from './engine-pods.ts'
import type { Service, StatefulSet } from '../../kubernetes/kinds.ts'
import type { PodSettings, ServerSize } from './settings.ts'
import type { Wanted } from './wanted.ts'

export interface PlacementFacts {
  readonly settings: PodSettings
  /** By id. @returns undefined when there is none */
  readonly region: (id: string) => Region | undefined
  /** By name. */
  readonly plan: (name: string) => Plan | undefined
}

/** What there is of the server already. */
export interface Existing {
  readonly statefulSet: StatefulSet | undefined
  readonly service: Service | undefined
}

/**
 * What a server is to be. Pure. A Region that was deleted leaves its servers as they are.
 * @returns the failure when no image or engine is known for its motor
 * @throws MooringError `unknown_plan`: nothing is changed at a server whose size is not known
 */
export function placementOf(
  server: DatabaseServer,
  { settings, ...facts }: PlacementFacts,
  existing: Existing,
): Omit<Wanted, 'admin'> | Extract<ServerState, { readonly phase: 'failed' }> {
  const { motor } = server.spec
  const engine = ENGINE_PODS[partsOf(motor).family]
  const region = facts.region(server.spec.region)
  const image = imageOf(server, region, existing.statefulSet) ?? settings.images[motor]
  if (!engine || image === undefined) {
    return { phase: 'failed', reason: 'MotorUnavailable', message: `there is no image of ${motor} here` }
  }
  const size = sizeOf(server, settings, facts.plan)
  const replaced = region?.spec.motors.find(({ id }) => id === motor)?.extensionDirectory ?? engine.replaces?.(motor)
  return { ...{ server, engine, image, size, replaced, settings }, ...(region ? placeIn(region, server) : placeOf(existing)) }
}

type Place = Pick<Wanted, 'exposure' | 'host' | 'nodeSelector'>

function placeIn({ spec: { databases, nodeSelector = {} } }: Region, { spec }: DatabaseServer): Place {
  // Nobody from outside has business on a server of Mooring's own.
  if (spec.tenancy === 'internal') return { exposure: 'ClusterIP', host: undefined, nodeSelector }
  return { exposure: databases?.exposure ?? 'ClusterIP', host: databases?.host, nodeSelector }
}

function placeOf({ service }: Existing): Place {
  const exposure = EXPOSURES.find((exposure) => exposure === service?.spec.type) ?? 'ClusterIP'
  return { exposure, host: undefined, nodeSelector: {} }
}

function imageOf({ spec }: DatabaseServer, region: Region | undefined, live: StatefulSet | undefined): string | undefined {
  if (region) return region.spec.motors.find(({ id }) => id === spec.motor)?.image
  return live?.spec.template.spec.containers[0]?.image
}

function sizeOf({ spec }: DatabaseServer, settings: PodSettings, plan: PlacementFacts['plan']): ServerSize {
  if (spec.plan === undefined) return settings.sharedSize
  const found = plan(spec.plan)
  if (!found) throw new MooringError('unknown_plan', `plan ${spec.plan} does not exist`)
  const { cpu, memoryMiB, storageGiB } = found.spec
  return { cpu, cpuLimit: cpu, memoryMiB, memoryLimitMiB: memoryMiB, storageGiB }
}
