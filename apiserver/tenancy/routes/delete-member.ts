import { z } from 'zod'
import { RoleBinding } from '../../../crds/core.ts'
import { untilGone } from '../../resources/cache-waits.ts'
import { deleteExpected } from '../../resources/delete-expected.ts'
import { ApiError } from '../../http/errors.ts'
import { memberName, memberView, Subject } from '../members.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, NamespaceParams, Nothing, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'roleBindings' | 'audit'>

/** `DELETE …/members/{subject}`: also for the last admin; a platform admin can always add one. */
export function deleteMember({ store, scopes, roleBindings, audit }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: `${NAMESPACE_PATH}/members/{subject}`,
    on: LISTENERS,
    id: 'deleteMember',
    summary: 'Remove a user’s role in a namespace.',
    conditional: true,
    params: z.object({ ...NamespaceParams.shape, subject: Subject }),
    replies: { 200: Nothing },
    async handle({ principal, params: { subject, ...slugs }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'delete', resource: 'rolebindings', namespace })
      const binding = await store.get(RoleBinding, { namespace, name: memberName(subject) })
      if (!binding || !memberView(binding)) throw new ApiError('not_found', `${subject} is not a member of this namespace`)
      await deleteExpected(store, RoleBinding, binding, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: binding })
      await untilGone(roleBindings, binding)
      return { status: 200, data: {} }
    },
  })
}
