import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Access, Verb } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { CatchUp } from '../resources/cache-waits.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'

export interface InstanceLookupDeps {
  readonly instances: Cache<typeof SharedInstance>
  readonly access: Access
  readonly scopes: Scopes
  readonly catchUp: CatchUp
}

/** Right that a request by id needs in the instance's namespace, in addition to reading the instance. */
export interface Need {
  readonly verb: Verb
  readonly resource: 'sharedinstances' | 'secrets'
}

/**
 * Finds an instance by its id.
 * @throws ApiError `not_found`, the same for an unknown instance and for one that the caller may not read; `forbidden` when the caller may read it
 * but lacks one of `needs`
 */
export type FindInstance = (principal: Principal, id: string, needs?: readonly Need[]) => Promise<SharedInstance>

/** Form of an id; other text is not found without a wait. */
const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createInstanceLookup({ instances, access, scopes, catchUp }: InstanceLookupDeps): FindInstance {
  return async function findInstance(principal, id, needs = []) {
    const uid = id.toLowerCase()
    const instance = UID.test(uid) ? await catchUp(instances, () => instances.byUid(uid)) : undefined
    const namespace = instance?.metadata.namespace
    if (!instance || !(await access.may(principal, { verb: 'get', resource: 'sharedinstances', namespace }))) {
      throw new ApiError('not_found', 'there is no database with this id; GET /v1/instances lists those of a namespace')
    }
    for (const need of needs) await scopes.require(principal, { ...need, namespace })
    return instance
  }
}

/** Checks that the instance is not being deleted. @throws ApiError `conflict` */
export function requireNotDeleting({ metadata }: SharedInstance): void {
  if (metadata.deletionTimestamp !== undefined)
    throw new ApiError('conflict', 'this database is being deleted, and cannot be changed')
}

/**
 * Checks that the template of an instance still exists, because a reset copies it again. The operator checks whether it can be copied now.
 * @throws ApiError `conflict` when the template is deleted or being deleted
 */
export async function requireTemplate(
  { instances, catchUp }: Pick<InstanceLookupDeps, 'instances' | 'catchUp'>,
  { metadata, spec }: SharedInstance,
): Promise<void> {
  if (!spec.templateRef) return
  const key = { namespace: metadata.namespace, name: spec.templateRef.name }
  const template = await catchUp(instances, () => instances.get(key))
  if (template && template.metadata.deletionTimestamp === undefined) return
  throw new ApiError(
    'conflict',
    'the template of this database was deleted, so it cannot be reset; delete the database and create another',
  )
}

/**
 * Checks that the instance has a database or is getting one; an instance past the quota of its namespace has none.
 * @throws ApiError `quota_exceeded` with the operator's message
 */
export function requireQuota(instance: SharedInstance): void {
  const condition = conditionOf(instance, 'Ready')
  if (isClaimed(instance) || condition?.reason !== InstanceReason.QuotaExceeded) return
  throw new ApiError('quota_exceeded', condition.message)
}
