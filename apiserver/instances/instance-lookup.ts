import { createHash } from 'node:crypto'
import { z } from 'zod'
import { InstanceReason, isClaimed, SharedInstance } from '../../crds/shared-instance.ts'
import type { Access, Verb } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { CatchUp } from '../resources/cache-waits.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal } from '../http/route.ts'
import type { Scopes } from '../auth/scope.ts'
import type { Store } from '../../store/port.ts'
import { Identifier } from './instance-body.ts'

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

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Whether a text, in lower case, has the form of an id; other text is not found without a wait. */
export const isUid = (text: string): boolean => UID.test(text)

export function createInstanceLookup({ instances, access, scopes, catchUp }: InstanceLookupDeps): FindInstance {
  return async function findInstance(principal, id, needs = []) {
    const uid = id.toLowerCase()
    const instance = isUid(uid) ? await catchUp(instances, () => instances.byUid(uid)) : undefined
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
  if (metadata.deletionTimestamp !== undefined) throw new ApiError('conflict', 'this database is being deleted')
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

export const BY_IDENTIFIER_PATH = '/v1/instances/by-identifier/{identifier}'

export const ByIdentifierParams = z.object({
  identifier: Identifier.describe('Identifier of the database, percent-encoded: `feature/a b#1` is `feature%2Fa%20b%231`.').meta({
    examples: ['pr-42'],
  }),
})

/** Instances of a namespace with the same identifier. */
export interface Identified {
  readonly live: SharedInstance | undefined
  /** Instances that are being deleted. */
  readonly deleting: readonly SharedInstance[]
}

/**
 * Finds the instances with an identifier. Reads the store, not the cache: another API server may just have created one.
 * @throws ApiError `conflict` when several live instances have it; StoreError
 */
export async function findByIdentifier(store: Store, namespace: string, identifier: string): Promise<Identified> {
  const all = (await store.list(SharedInstance, { namespace })).items.filter(({ spec }) => spec.identifier === identifier)
  const isDeleting = ({ metadata }: SharedInstance): boolean => metadata.deletionTimestamp !== undefined
  const live = all.filter((each) => !isDeleting(each))
  if (live.length > 1) {
    const message = `${live.length} databases have the identifier ${identifier}; name one of them by its id`
    throw new ApiError('conflict', message, { details: [{ field: 'identifier', message: 'must name one database' }] })
  }
  return { live: live[0], deleting: all.filter(isDeleting) }
}

/**
 * Returns the name of the object that a PUT creates: a function of namespace and identifier, so that only one of many simultaneous requests creates
 * it. An object keeps its name when its identifier changes; `attempt` then selects the next name, the same for all requests.
 */
export function nameByIdentifier(namespace: string, identifier: string, attempt: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify(['by-identifier', namespace, identifier, attempt]))
    .digest('hex')
  return `i-${hash.slice(0, 32)}`
}
