import { MooringError } from '../../../shared/errors.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { partsOf } from '../../../crds/motor.ts'
import type { Plan } from '../../../crds/plan.ts'
import { EXPOSURES, type Region } from '../../../crds/region.ts'
import type { ServerState } from '../runtime.ts'
import { ENGINE_PODS } from './engine-pods.ts'
import type { Service, StatefulSet } from '../../kubernetes/kinds.ts'
import type { PodSettings, ServerSize } from './settings.ts'
import type { DesiredServer } from './desired-server.ts'

export interface PlacementFacts {
  readonly settings: PodSettings
  /** Region by id; undefined when it does not exist. */
  readonly region: (id: string) => Region | undefined
  /** Plan by name; undefined when it does not exist. */
  readonly plan: (name: string) => Plan | undefined
}

/** Existing objects of the server. */
export interface Existing {
  readonly statefulSet: StatefulSet | undefined
  readonly service: Service | undefined
}

/**
 * Desired placement and size of a server. Pure. When its Region was deleted, a server stays as it is.
 * @returns a failure when no image or engine is known for the motor
 * @throws MooringError `unknown_plan`: a server of unknown size is not changed
 */
export function placementOf(
  server: DatabaseServer,
  { settings, ...facts }: PlacementFacts,
  existing: Existing,
): Omit<DesiredServer, 'admin'> | Extract<ServerState, { readonly phase: 'failed' }> {
  const { motor } = server.spec
  const engine = ENGINE_PODS[partsOf(motor).family]
  const region = facts.region(server.spec.region)
  const image = imageOf(server, region, existing.statefulSet) ?? settings.images[motor]
  if (!engine || image === undefined) {
    return { phase: 'failed', reason: 'MotorUnavailable', message: `no image of ${motor} is configured` }
  }
  const size = sizeOf(server, settings, facts.plan)
  const replaced = region?.spec.motors.find(({ id }) => id === motor)?.extensionDirectory ?? engine.replaces?.(motor)
  return { ...{ server, engine, image, size, replaced, settings }, ...(region ? exposedIn(region, server) : exposedAs(existing)) }
}

type Exposed = Pick<DesiredServer, 'exposure' | 'host' | 'nodeSelector'>

function exposedIn({ spec: { databases, nodeSelector = {} } }: Region, { spec }: DatabaseServer): Exposed {
  // A server of Mooring's own has no callers from outside.
  if (spec.tenancy === 'internal') return { exposure: 'ClusterIP', host: undefined, nodeSelector }
  return { exposure: databases?.exposure ?? 'ClusterIP', host: databases?.host, nodeSelector }
}

function exposedAs({ service }: Existing): Exposed {
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
