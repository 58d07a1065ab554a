import { z } from 'zod'
import { labels } from '../../../crds/names.ts'
import { NamespaceView, namespaceView } from '../namespace-view.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { listOf, ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'

/** `GET /v1/organizations/{organization}/namespaces`: namespaces in which the caller has a role; all for a platform admin. */
export function listNamespaces({ access, organizations, tenantNamespaces, namespaces }: TenancyDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${ORGANIZATION_PATH}/namespaces`,
    on: LISTENERS,
    id: 'listNamespaces',
    summary: 'List the namespaces of an organization in which you have a role.',
    params: OrganizationParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('namespaces', NamespaceView) },
    async handle({ principal, params, query }) {
      const { metadata } = await organizations.find(principal, params.organization)
      // A TenantNamespace without its Namespace, or with a Namespace of another owner, is not found under its path either.
      const exists = (name: string) => namespaces.get({ name })?.metadata.labels?.[labels.organization] === metadata.name
      const all = tenantNamespaces.list().filter((each) => each.spec.organization === metadata.name && exists(each.metadata.name))
      const seesAll = await access.may(principal, { verb: 'list', resource: 'tenantnamespaces' })
      const memberships = seesAll ? [] : await access.memberships(principal)
      const own = new Set(memberships.filter((m) => m.organization === metadata.name).map((m) => m.namespace))
      const visible = seesAll ? all : all.filter(({ spec }) => own.has(spec.namespace))
      const { items, nextCursor } = page(visible, query, resourceKey)
      return { status: 200, data: { namespaces: items.map((item) => namespaceView(item, namespaces)), nextCursor } }
    },
  })
}
