import { z } from 'zod'
import { MemberView, memberView } from '../members.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

/** `GET …/members`: members created through this API; RoleBindings created with kubectl are not listed. */
export function listMembers({ scopes, roleBindings }: Pick<TenancyDeps, 'scopes' | 'roleBindings'>): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/members`,
    on: LISTENERS,
    id: 'listMembers',
    summary: 'List the members of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('members', MemberView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'rolebindings', namespace })
      const members = roleBindings.list({ namespace }).flatMap((binding) => {
        const member = memberView(binding)
        return member ? [{ member, metadata: binding.metadata }] : []
      })
      const { items, nextCursor } = page(members, query, resourceKey)
      return { status: 200, data: { members: items.map(({ member }) => member), nextCursor } }
    },
  })
}
