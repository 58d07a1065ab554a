import { z } from 'zod'
import { Motor, MOTORS, partsOf } from '../../crds/motor.ts'
import type { Region } from '../../crds/region.ts'
import { takesTunnels, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'
import { EXAMPLE } from '../openapi/openapi-examples.ts'

/** A motor as a region has it. `version` is the motor's own; `reason` says why it is not supported. */
export interface RegionMotor {
  readonly id: Motor
  readonly version: string
  readonly supported: boolean
  readonly reason?: string | undefined
}

export const RegionView = z
  .object({
    id: z.uuid().describe('What `region` means when a database is created.'),
    name: z.string(),
    regionId: z.int().describe('What `regionId` means when a tunnel is created.'),
    motors: z.array(z.object({ id: Motor, version: z.string(), supported: z.boolean() })).describe('Engines that run here.'),
    tunnels: z.boolean().describe('Whether tunnels can be created here.'),
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

/** Region and motor as a caller wrote them. */
export interface Wish {
  readonly region: string
  readonly motor: string
}

export interface RegionsDeps {
  /** Absent where there are no edges. */
  readonly endpoints?: Cache<typeof TunnelEndpoint> | undefined
  readonly regions: Cache<typeof Region>
  readonly motorsOf: (region: Region) => readonly RegionMotor[]
}

export interface Regions {
  readonly all: () => readonly Region[]
  /** Human-readable name of the region with this id; the id itself when there is none (any more). */
  readonly nameOf: (id: string) => string
  /** Region with this id, whose case does not count. */
  readonly find: (id: string) => Region | undefined
  readonly view: (region: Region) => RegionView
  /**
   * The region and motor that a caller named. The id's case does not count.
   * @throws ApiError `unknown_region`, `unsupported_motor` with what the region runs
   */
  readonly choose: (wish: Wish) => { readonly region: Region; readonly motor: Motor }
}

/** A Region lists what it can run and nothing else, so what it lists is supported. */
export function servedMotors(region: Region): readonly RegionMotor[] {
  return region.spec.motors.map(({ id }) => ({ id, version: partsOf(id).version, supported: true }))
}

/** Lookups over the regions of the installation; there are few. */
export function createRegions({ regions, motorsOf, endpoints }: RegionsDeps): Regions {
  const all = () => regions.list()
  const byId = (id: string) => all().find((region) => region.spec.id.toLowerCase() === id.toLowerCase())

  function nameOf(id: string): string {
    return byId(id)?.spec.name ?? id
  }

  function view(region: Region): RegionView {
    const { id, name, regionId } = region.spec
    const motors = motorsOf(region).map(({ id, version, supported }) => ({ id, version, supported }))
    const tunnels = endpoints?.list().some((endpoint) => takesTunnels(endpoint) && endpoint.spec.region === id) === true
    return { id, name, regionId, motors, tunnels }
  }

  function choose(wish: Wish): { region: Region; motor: Motor } {
    const region = byId(wish.region)
    if (!region) {
      throw new ApiError('unknown_region', `unknown region: ${wish.region}`, {
        details: [{ field: 'region', message: 'must be the id of a region in GET /v1/regions' }],
      })
    }
    const found = motorsOf(region).find(({ id }) => id === wish.motor)
    if (!found?.supported) throw unsupported(wish.motor, whyNot(region, wish.motor, found))
    return { region, motor: found.id }
  }

  function whyNot(region: Region, motor: string, found: RegionMotor | undefined): string {
    const served = motorsOf(region).flatMap(({ id, supported }) => (supported ? [id] : []))
    const list = served.length > 0 ? `it runs ${served.join(', ')}` : 'it runs none'
    if (!isMotor(motor)) return `the motors are ${MOTORS.join(', ')}; of these, in region ${region.spec.name}, ${list}`
    return `region ${region.spec.name} does not run it${found?.reason ? ` (${found.reason})` : ''}; ${list}`
  }

  return { all, nameOf, find: byId, view, choose }
}

function isMotor(text: string): boolean {
  return Motor.safeParse(text).success
}

function unsupported(motor: string, why: string): ApiError {
  return new ApiError('unsupported_motor', `unsupported motor: ${motor}: ${why}`, { details: [{ field: 'motor', message: why }] })
}
