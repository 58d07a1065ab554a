import { z } from 'zod'
import type { Region } from '../../crds/region.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { type Audit, noAudit } from '../journal/audit.ts'
import { type CatchUp, createCatchUp } from '../resources/catch-up.ts'
import { type Credentials, readCredentials } from './instance-credentials.ts'
import { createInstanceLookup, type FindInstance } from './instance-lookup.ts'
import { InstanceView, instanceView } from './instance-view.ts'
import { createInstanceWaits, type InstanceWaits } from './instance-waits.ts'
import { DEFAULT_LIMITS } from '../http/limits.ts'
import { createQuota, type Quota } from '../resources/quota.ts'
import { createRegions, type RegionMotor, type Regions } from '../catalog/regions.ts'
import type { Reply } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'
import { idParam } from '../tenancy/tenancy-deps.ts'

export interface InstanceLimits {
  /** Instances in a namespace. */
  readonly perNamespace: number
  /** Milliseconds that a request waits for a claim, a rotation, a reset or a switch. */
  readonly changeMs: number
  /** Milliseconds that a DELETE waits. */
  readonly deleteMs: number
}

/** As surface, sections 2 and 3, have them. */
export const INSTANCE_LIMITS: InstanceLimits = { perNamespace: DEFAULT_LIMITS.quotaInstances, changeMs: 25_000, deleteMs: 30_000 }

/** What the wiring hands in. */
export interface InstanceWiring {
  readonly store: Store
  readonly access: Access
  readonly scopes: Scopes
  readonly instances: Cache<typeof SharedInstance>
  readonly regions: Cache<typeof Region>
  /** Motors of a region; `servedMotors` (regions.ts) unless the home knows better. */
  readonly motorsOf: (region: Region) => readonly RegionMotor[]
  readonly instanceLimits: InstanceLimits
  readonly now: () => Date
  /** Absent where there is no journal. */
  readonly audit?: Audit | undefined
  /** None where this process alone creates. */
  readonly catchUp?: CatchUp
}

/** What the routes of shared instances work with. */
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
  readonly answer: InstanceAnswers
}

/** Renders an instance as the data of a reply. */
export interface InstanceAnswers {
  /** Password and uri null. */
  plain(status: 200 | 202, instance: SharedInstance): InstanceReply
  /** With what its Secret holds. @throws ApiError `unavailable`; StoreError */
  withCredentials(status: 200 | 201, instance: SharedInstance): Promise<InstanceReply>
}

export type InstanceReply = Reply<{ readonly instance: InstanceView }>
export const InstanceData = z.object({ instance: InstanceView })

/** Parameters of the routes below `/v1/instances/{id}`. Any text is an id that does not exist: 404, not 400. */
export const InstanceParams = z.object({ id: idParam('Id of the instance.') })

export function createInstanceDeps(wiring: InstanceWiring): InstanceDeps {
  const { store, scopes, instances, instanceLimits: limits, now, audit = noAudit, catchUp = createCatchUp(0) } = wiring
  const regions = createRegions(wiring)
  return {
    store,
    scopes,
    instances,
    regions,
    limits,
    now,
    audit,
    catchUp,
    quota: createQuota({ cache: instances, max: limits.perNamespace, what: 'databases' }),
    find: createInstanceLookup({ ...wiring, catchUp }),
    waits: createInstanceWaits({ instances, ...limits }),
    answer: createAnswers(store, regions),
  }
}

function createAnswers(store: Store, regions: Regions): InstanceAnswers {
  function reply(status: 200 | 201 | 202, instance: SharedInstance, credentials?: Credentials): InstanceReply {
    const data = { instance: instanceView(instance, { region: regions.nameOf(instance.spec.region), credentials }) }
    return { status, data, etag: instance.metadata.resourceVersion }
  }
  return {
    plain: (status, instance) => reply(status, instance),
    withCredentials: async (status, instance) => reply(status, instance, await readCredentials(store, instance)),
  }
}
