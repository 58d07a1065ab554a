import { z } from 'zod'
import { RoleBinding } from '../../crds/core.ts'
import { ROLES } from '../../crds/names.ts'
import { untilKnown } from '../cache-waits.ts'
import { memberName, MemberView, memberView, newMember, Subject } from '../members.ts'
import { type AnyRoute, LISTENERS, route } from '../route.ts'
import { NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

const MemberData = z.object({ member: MemberView })

/** `PUT …/members/{subject}`: 201 for a new member, 200 for one who now has this role. */
export function putMember({ store, scopes, roleBindings }: Pick<TenancyDeps, 'store' | 'scopes' | 'roleBindings'>): AnyRoute {
  return route({
    method: 'put',
    path: `${NAMESPACE_PATH}/members/{subject}`,
    on: LISTENERS,
    id: 'putMember',
    summary: 'Give a user a role in a namespace.',
    params: z.object({ ...NamespaceParams.shape, subject: Subject }),
    body: z.object({ role: z.enum(ROLES) }),
    replies: { 200: MemberData, 201: MemberData },
    async handle({ principal, params: { subject, ...slugs }, body: { role } }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'create', resource: 'rolebindings', namespace })
      const data = { member: { subject, role } }
      const before = await store.get(RoleBinding, { namespace, name: memberName(subject) })
      if (before && memberView(before)?.role === role) return { status: 200, data }
      // The role of a RoleBinding cannot change; without one the member has no role for a moment, which is the safe side.
      if (before) await store.delete(RoleBinding, before.metadata, { uid: before.metadata.uid })
      await untilKnown(roleBindings, await store.create(RoleBinding, newMember(namespace, data.member)))
      return { status: before ? 200 : 201, data }
    },
  })
}
