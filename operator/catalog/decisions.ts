import { type ApiToken, ApiTokenReason, endOfApiToken } from '../../crds/api-token.ts'
import { type Organization, OrganizationReason } from '../../crds/organization.ts'
import { type Plan, PlanReason } from '../../crds/plan.ts'
import { type DatabaseServer, ServerReason } from '../../crds/database-server.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Motor } from '../../crds/motor.ts'
import { type Region, regionBefore, RegionReason, regionsInForce } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { conditionOf, notReady, ready, type Decision } from '../../store/conditions.ts'
import { withoutPullError } from '../kubernetes/pod-state.ts'

// Ready conditions of the kinds that are only data: nothing is created for them. All functions are pure.

/**
 * Returns why a region cannot run a motor: all of its shared servers of the motor lack binaries or image. Undefined when one may run, and while
 * there is none: a motor that is not warm is first tried when it is used.
 */
function motorProblem({ spec: { id } }: Region, motor: Motor, servers: readonly DatabaseServer[]): string | undefined {
  const problems = servers
    .filter(({ spec }) => spec.region === id && spec.motor === motor && spec.tenancy === 'shared')
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((server) => conditionOf(server, 'Ready'))
    .map((ready) => (ready?.reason === ServerReason.MotorUnavailable ? withoutPullError(ready.message) : undefined))
  return problems.every((problem) => problem !== undefined) ? problems[0] : undefined
}

/** Ready condition of a region among all regions, with the database servers of all regions. */
export function regionDecision(region: Region, regions: readonly Region[], servers: readonly DatabaseServer[]): Decision {
  const elder = regionBefore(region, regions)
  if (elder)
    return notReady(
      RegionReason.IdTaken,
      `the older region ${elder.metadata.name} has its id or its regionId: delete one of the two`,
    )
  const { motors } = region.spec
  const { length } = motors
  if (length === 0) return notReady(RegionReason.NoMotors, 'it lists no motors, so it offers no databases')
  const problems = motors.flatMap(({ id }) => {
    const problem = motorProblem(region, id, servers)
    return problem === undefined ? [] : [`it cannot run ${id}: ${problem}`]
  })
  if (problems.length === 0) return ready(RegionReason.Serving, `it runs ${length} motors`)
  const message = `it runs ${length - problems.length} of ${length} motors; ${problems.join('; ')}`
  return notReady(RegionReason.MotorUnavailable, message)
}

/** Objects of all regions. */
interface RegionContents {
  readonly regions: readonly Region[]
  readonly instances: readonly Pick<SharedInstance, 'spec'>[]
  readonly databases: readonly Pick<DedicatedDatabase, 'spec'>[]
  readonly tunnels: readonly Pick<Tunnel, 'spec'>[]
}

/** Numbers of a region's databases and tunnels, those being deleted included. */
export function regionCounts(region: Region, { regions, instances, databases, tunnels }: RegionContents) {
  // What is in the older region of the id does not keep this one from being deleted.
  if (regionBefore(region, regions)) return { instances: 0, databases: 0, tunnels: 0 }
  const { id, regionId } = region.spec
  return {
    instances: instances.filter(({ spec }) => spec.region === id).length,
    databases: databases.filter(({ spec }) => spec.region === id).length,
    tunnels: tunnels.filter(({ spec }) => spec.regionId === regionId).length,
  }
}

/** Ready condition of a plan: whether a region can run one of its engines. */
export function planDecision({ spec }: Plan, regions: readonly Region[], servers: readonly DatabaseServer[]): Decision {
  const offers = (region: Region, motor: Motor) =>
    spec.engines.includes(motor) && motorProblem(region, motor, servers) === undefined
  const offering = regionsInForce(regions).filter((region) => region.spec.motors.some(({ id }) => offers(region, id)))
  const [first] = offering
  if (!first) return notReady(PlanReason.NotOffered, 'no region runs any of its engines')
  return ready(PlanReason.Offered, `${offering.length} regions run an engine of it`)
}

export function organizationDecision(organization: Organization): Decision {
  return ready(OrganizationReason.Active, `namespaces can be made in ${organization.metadata.name}`)
}

/** Ready condition of an API token at `now`, in milliseconds since the epoch. */
export function apiTokenDecision(token: ApiToken, now: number): Decision {
  const end = endOfApiToken(token)
  const at = new Date(end).toISOString()
  if (end <= now) return notReady(ApiTokenReason.Expired, `it expired at ${at}`)
  return ready(ApiTokenReason.Active, `it is accepted until ${at}`)
}
