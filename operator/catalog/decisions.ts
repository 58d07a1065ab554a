import { type ApiToken, ApiTokenReason, endOfApiToken } from '../../crds/api-token.ts'
import { type Organization, OrganizationReason } from '../../crds/organization.ts'
import { type Plan, PlanReason } from '../../crds/plan.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { type Region, regionBefore, RegionReason, regionsInForce } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'

// Ready conditions of the kinds that are only data: nothing is created for them. All functions are pure.

/** Ready condition of a region among all regions. */
export function regionDecision(region: Region, regions: readonly Region[]): Decision {
  const elder = regionBefore(region, regions)
  if (elder)
    return notReady(
      RegionReason.IdTaken,
      `the older region ${elder.metadata.name} has its id or its regionId: delete one of the two`,
    )
  const { spec } = region
  const { length } = spec.motors
  if (length === 0) return notReady(RegionReason.NoMotors, 'it lists no motors, so it offers no databases')
  return ready(RegionReason.Serving, `it runs ${length} motors`)
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

export function planDecision({ spec }: Plan, regions: readonly Region[]): Decision {
  const offering = regionsInForce(regions).filter((region) => region.spec.motors.some(({ id }) => spec.engines.includes(id)))
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
