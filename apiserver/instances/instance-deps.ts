import { z } from 'zod'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { type Audit, noAudit } from '../journal/audit.ts'
import { type CatchUp, createCatchUp } from '../resources/cache-waits.ts'
import { type Credentials, InstanceView, instanceView } from './instance-view.ts'
import { createInstanceLookup, type FindInstance } from './instance-lookup.ts'
import { createInstanceWaits, type InstanceWaits } from './instance-waits.ts'
import { DEFAULT_LIMITS } from '../http/rate-limit.ts'
import { createCreationQuota, type Quota } from '../resources/creations.ts'
import { createRegions, type RegionMotor, type Regions, type RegionsDeps } from '../catalog/regions.ts'
import type { Reply } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'
import { idParam } from '../tenancy/tenancy-deps.ts'

export interface InstanceLimits {
  /** Maximum of instances in a namespace. */
  readonly perNamespace: number
  /** Time budget in milliseconds of a creation, a password rotation, a reset, switching off and on, or an answer with credentials. */
  readonly changeMs: number
  /** Maximum wait of a creation for the sessions of its template to end, in milliseconds. A client that has just disconnected is gone within it. */
  readonly templateMs: number
  /** Time budget of a DELETE in milliseconds. */
  readonly deleteMs: number
}

/** Default limits (docs/limits.md, "Shared databases"). */
export const INSTANCE_LIMITS: InstanceLimits = {
  perNamespace: DEFAULT_LIMITS.quotaInstances,
  changeMs: 25_000,
  templateMs: 3_000,
  deleteMs: 30_000,
}

/** Dependencies that the process provides. */
export interface InstanceWiring {
  readonly store: Store
  readonly access: Access
  readonly scopes: Scopes
  readonly instances: Cache<typeof SharedInstance>
  readonly regions: Cache<typeof Region>
  /** Returns the motors of a region; `servedMotors` (regions.ts) unless the deployment mode restricts them. */
  readonly motorsOf: (region: Region) => readonly RegionMotor[]
  /** Explains how the installation comes to serve a motor (regions.ts). */
  readonly motorAdvice?: RegionsDeps['motorAdvice']
  readonly instanceLimits: InstanceLimits
  readonly now: () => Date
  /** Absent in an installation without a journal. */
  readonly audit?: Audit | undefined
  /** Absent where no other process creates instances. */
  readonly catchUp?: CatchUp
}

/** Dependencies of the routes of shared instances. */
export interface InstanceDeps {
  readonly store: Store
  readonly scopes: Scopes
  readonly instances: Cache<typeof SharedInstance>
  readonly regions: Regions
  readonly quota: Quota
  readonly limits: InstanceLimits
  readonly now: () => Date
  readonly audit: Audit
  readonly catchUp: CatchUp
  readonly find: FindInstance
  readonly waits: InstanceWaits
  readonly answer: InstanceReplies
}

/** Renders an instance as a reply. */
export interface InstanceReplies {
  /** Renders with password, uri and CA null. */
  plain(status: 200 | 202, instance: SharedInstance): InstanceReply
  /**
   * Renders with the credentials from its Secret once they are in force, within the time budget of a request that arrived at `arrivedAt`.
   * @throws ApiError as {@link InstanceWaits.granted}; StoreError
   */
  withCredentials(status: 200 | 201, instance: SharedInstance, arrivedAt: number): Promise<InstanceReply>
}

export type InstanceReply = Reply<{ readonly instance: InstanceView }>
export const InstanceData = z.object({ instance: InstanceView })

/** Parameters of the routes below `/v1/instances/{id}`. Text that is not an id is 404, not 400. */
export const InstanceParams = z.object({ id: idParam('Id of the instance.') })

export function createInstanceDeps(wiring: InstanceWiring): InstanceDeps {
  const { store, scopes, instances, instanceLimits: limits, now, audit = noAudit, catchUp = createCatchUp(0) } = wiring
  const regions = createRegions(wiring)
  const waits = createInstanceWaits({ store, instances, ...limits })
  return {
    store,
    scopes,
    instances,
    regions,
    limits,
    now,
    audit,
    catchUp,
    quota: createCreationQuota({ cache: instances, max: limits.perNamespace, what: 'databases' }),
    find: createInstanceLookup({ ...wiring, catchUp }),
    waits,
    answer: createReplies(waits, regions),
  }
}

function createReplies(waits: InstanceWaits, regions: Regions): InstanceReplies {
  function reply(status: 200 | 201 | 202, instance: SharedInstance, credentials?: Credentials): InstanceReply {
    const data = { instance: instanceView(instance, { region: regions.nameOf(instance.spec.region), credentials }) }
    return { status, data, etag: instance.metadata.resourceVersion }
  }
  return {
    plain: (status, instance) => reply(status, instance),
    async withCredentials(status, claimed, arrivedAt) {
      const { instance, credentials } = await waits.granted(claimed, arrivedAt)
      return reply(status, instance, credentials)
    },
  }
}
