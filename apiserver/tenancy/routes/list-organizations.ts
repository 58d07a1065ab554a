import { z } from 'zod'
import { OrganizationView, organizationView } from '../organizations.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { listOf, type TenancyDeps } from '../tenancy-deps.ts'

/** `GET /v1/organizations`: organizations with a namespace in which the caller has a role; all for a platform admin. */
export function listOrganizations({ organizations }: Pick<TenancyDeps, 'organizations'>): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/organizations',
    on: LISTENERS,
    id: 'listOrganizations',
    summary: 'List the organizations in which you have a role.',
    query: z.object(PageQuery),
    replies: { 200: listOf('organizations', OrganizationView) },
    async handle({ principal, query }) {
      const { items, nextCursor } = page(await organizations.visible(principal), query, resourceKey)
      return { status: 200, data: { organizations: items.map(organizationView), nextCursor } }
    },
  })
}
