import { InstanceReason, isClaimed, type SharedInstance } from '../../crds/shared-instance.ts'
import type { Access, Verb } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { CatchUp } from '../resources/catch-up.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'

export interface InstanceLookupDeps {
  readonly instances: Cache<typeof SharedInstance>
  readonly access: Access
  readonly scopes: Scopes
  readonly catchUp: CatchUp
}

/** A right that a call by id needs in the instance's namespace, beyond seeing the instance. */
export interface Need {
  readonly verb: Verb
  readonly resource: 'sharedinstances' | 'secrets'
}

/**
 * Finds the instance that `id` names.
 * @throws ApiError `not_found` when there is none or the caller may not see it: the two look the same; `forbidden` when the caller
 * sees it but lacks one of `needs`
 */
export type FindInstance = (principal: Principal, id: string, needs?: readonly Need[]) => Promise<SharedInstance>

/** Nothing else is an id, or worth a wait. */
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

/** @throws ApiError `conflict` when the instance is being deleted */
export function mustStay({ metadata }: SharedInstance): void {
  if (metadata.deletionTimestamp !== undefined)
    throw new ApiError('conflict', 'this database is being deleted, and cannot be changed')
}

/**
 * For a reset, which copies the template again. Whether it can be copied at this moment is the operator's to find out.
 * @throws ApiError `conflict` when the template is gone, or going
 */
export async function mustHaveTemplate(
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
 * For what only a database can have done to it: one that waits for room in its namespace has none, for as long as that takes.
 * @throws ApiError `quota_exceeded`, with what the operator said, when the instance waits for room
 */
export function mustHaveRoom(instance: SharedInstance): void {
  const condition = conditionOf(instance, 'Ready')
  if (isClaimed(instance) || condition?.reason !== InstanceReason.QuotaExceeded) return
  throw new ApiError('quota_exceeded', condition.message)
}
