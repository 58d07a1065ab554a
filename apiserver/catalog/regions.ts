import { z } from 'zod'
import { Motor, partsOf } from '../../crds/motor.ts'
import { type Region, regionsInForce } from '../../crds/region.ts'
import { endpointsInForce, takesTunnels, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'

/** Motor of a region. `version` is the engine version; `reason` explains why the motor is not supported. */
export interface RegionMotor {
  readonly id: Motor
  readonly version: string
  readonly supported: boolean
  readonly reason?: string | undefined
}

export const RegionView = z
  .object({
    id: z.uuid().describe('Value of `region` when a database is created.'),
    name: z.string(),
    regionId: z.int().describe('Value of `regionId` when a tunnel is created.'),
    motors: z.array(z.object({ id: Motor, version: z.string(), supported: z.boolean() })).describe('Engines of the region.'),
    tunnels: z.boolean().describe('Whether tunnels can be created in the region.'),
  })
  .meta({
    id: 'Region',
    examples: [
      {
        id: EXAMPLE.region,
        name: 'local',
        regionId: EXAMPLE.regionId,
        motors: [{ id: 'postgresql-15.4.0', version: '15.4.0', supported: true }],
        tunnels: true,
      },
    ],
  })
export type RegionView = z.output<typeof RegionView>

/** Region and motor of a request body. */
export interface RequestedEngine {
  readonly region: string
  readonly motor: string
}

export interface RegionsDeps {
  /** Absent in an installation without edges. */
  readonly endpoints?: Cache<typeof TunnelEndpoint> | undefined
  readonly regions: Cache<typeof Region>
  readonly motorsOf: (region: Region) => readonly RegionMotor[]
  /** Explains to the administrator how the installation comes to serve a motor that no region lists; undefined when it cannot. */
  readonly motorAdvice?: ((motor: Motor) => string | undefined) | undefined
}

export interface Regions {
  readonly all: () => readonly Region[]
  /** Returns the name of the region with this id, or the id itself when no region has it. */
  readonly nameOf: (id: string) => string
  /** Returns the region with this id, compared without case. */
  readonly find: (id: string) => Region | undefined
  readonly view: (region: Region) => RegionView
  /**
   * Returns the region and motor that a request names. The region id is compared without case. `field` is the field of the body with the motor.
   * @throws ApiError `unknown_region`, `unsupported_motor` with the motors of the region
   */
  readonly choose: (requested: RequestedEngine, field?: 'motor' | 'engine') => { readonly region: Region; readonly motor: Motor }
}

/** Returns the motors of a region. Every motor that a Region lists is supported. */
export function servedMotors(region: Region): readonly RegionMotor[] {
  return region.spec.motors.map(({ id }) => ({ id, version: partsOf(id).version, supported: true }))
}

/** Creates the lookups over the regions of the installation. They scan the list, which is short. */
export function createRegions({ regions, motorsOf, motorAdvice, endpoints }: RegionsDeps): Regions {
  const all = () => regionsInForce(regions.list())
  const byId = (id: string) => all().find((region) => region.spec.id.toLowerCase() === id.toLowerCase())

  function nameOf(id: string): string {
    return byId(id)?.spec.name ?? id
  }

  function view(region: Region): RegionView {
    const { id, name, regionId } = region.spec
    const motors = motorsOf(region).map(({ id, version, supported }) => ({ id, version, supported }))
    const tunnels = endpointsInForce(endpoints?.list() ?? []).some(
      (endpoint) => takesTunnels(endpoint) && endpoint.spec.region === id,
    )
    return { id, name, regionId, motors, tunnels }
  }

  function choose(requested: RequestedEngine, field = 'motor'): { region: Region; motor: Motor } {
    const region = byId(requested.region)
    if (!region) {
      throw new ApiError(
        'unknown_region',
        `unknown region: ${requested.region}; GET /v1/regions lists those that are available`,
        {
          details: [{ field: 'region', message: 'must be the id of a region in GET /v1/regions' }],
        },
      )
    }
    const found = motorsOf(region).find(({ id }) => id === requested.motor)
    if (!found?.supported) throw unsupported(unsupportedReason(region, requested.motor, found), field)
    return { region, motor: found.id }
  }

  function unsupportedReason(region: Region, motor: string, found: RegionMotor | undefined): string {
    const served = motorsOf(region).flatMap(({ id, supported }) => (supported ? [id] : []))
    const list = served.length > 0 ? `serves ${served.join(', ')}` : 'serves no motors'
    const { name } = region.spec
    if (!isMotor(motor)) return `${motor} is not a motor; region ${name} ${list}`
    const reason = found?.reason ?? motorAdvice?.(motor)
    return `region ${name} does not serve ${motor}${reason ? ` (${reason})` : ''}; it ${list}`
  }

  return { all, nameOf, find: byId, view, choose }
}

function isMotor(text: string): text is Motor {
  return Motor.safeParse(text).success
}

function unsupported(message: string, field: string): ApiError {
  return new ApiError('unsupported_motor', message, { details: [{ field, message }] })
}
