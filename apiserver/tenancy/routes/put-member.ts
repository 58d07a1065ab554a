import { z } from 'zod'
import { RoleBinding } from '../../../crds/core.ts'
import type { Draft } from '../../../crds/kind.ts'
import { ROLES } from '../../../crds/names.ts'
import { isStoreError } from '../../../store/errors.ts'
import type { AuditedRequest } from '../../journal/audit.ts'
import { untilKnown } from '../../resources/cache-waits.ts'
import { ApiError } from '../../http/errors.ts'
import { type IfMatch, requireExpected } from '../../http/if-match.ts'
import { memberName, MemberView, memberView, newMember, Subject } from '../members.ts'
import { type AnyRoute, LISTENERS, type Reply, route } from '../../http/route.ts'
import { NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

const MemberData = z.object({ member: MemberView })
/** Maximum number of attempts; each fails only when another request changes the same member at the same time. */
const ATTEMPTS = 5

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'roleBindings' | 'audit' | 'now'>

interface MemberChange {
  readonly namespace: string
  readonly member: MemberView
  readonly ifMatch: IfMatch | undefined
  readonly by: Pick<AuditedRequest, 'principal' | 'requestId' | 'sourceIp'>
}

/** `PUT …/members/{subject}`: 201 for a new member, 200 for an existing one. */
export function putMember({ store, scopes, roleBindings, audit, now }: Deps): AnyRoute {
  /** Deletes the RoleBinding at this version only, so that a concurrent change is not overwritten unseen. */
  async function remove({ metadata }: RoleBinding): Promise<void> {
    const { uid, resourceVersion } = metadata
    try {
      await store.delete(RoleBinding, metadata, { uid, resourceVersion })
    } catch (error) {
      if (!isStoreError(error, 'not_found')) throw error
    }
  }

  /** Sets the role. Undefined when another request changes the member at the same time: the caller tries again. */
  async function attempt({ namespace, member, ifMatch, by }: MemberChange): Promise<Pick<Reply, 'status' | 'etag'> | undefined> {
    const before = await store.get(RoleBinding, { namespace, name: memberName(member.subject) })
    requireExpected(before?.metadata.resourceVersion, ifMatch)
    if (before && memberView(before)?.role === member.role) {
      await untilKnown(roleBindings, before, scopes.rejectWhenDeleted({ namespace }))
      return { status: 200, etag: before.metadata.resourceVersion }
    }
    const after = await replace(before, newMember(namespace, member, now()))
    if (!after) return undefined
    await audit.record({ ...by, action: before ? 'update' : 'create', before, after })
    await untilKnown(roleBindings, after, scopes.rejectWhenDeleted({ namespace }))
    return { status: before ? 200 : 201, etag: after.metadata.resourceVersion }
  }

  /** Replaces a RoleBinding, because its role is immutable. Between the two writes the member has no role, which is the safe side. */
  async function replace(before: RoleBinding | undefined, draft: Draft<typeof RoleBinding>): Promise<RoleBinding | undefined> {
    try {
      if (before) await remove(before)
      return await store.create(RoleBinding, draft)
    } catch (error) {
      if (isStoreError(error, 'already_exists') || isStoreError(error, 'conflict')) return undefined
      throw error
    }
  }

  return route({
    method: 'put',
    path: `${NAMESPACE_PATH}/members/{subject}`,
    on: LISTENERS,
    id: 'putMember',
    summary: 'Give a user a role in a namespace.',
    conditional: true,
    params: z.object({ ...NamespaceParams.shape, subject: Subject }),
    body: z.object({ role: z.enum(ROLES) }).meta({ id: 'PutMember', examples: [{ role: 'editor' }] }),
    replies: { 200: MemberData, 201: MemberData },
    async handle({ principal, params: { subject, ...slugs }, body: { role }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'create', resource: 'rolebindings', namespace })
      const member = { subject, role }
      for (let tries = 1; tries <= ATTEMPTS; tries++) {
        const done = await attempt({ namespace, member, ifMatch, by: { principal, requestId, sourceIp } })
        if (done) return { ...done, data: { member } }
      }
      throw new ApiError('conflict', 'other requests keep changing this member; try again')
    },
  })
}
