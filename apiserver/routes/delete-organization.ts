import { Namespace } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { untilGone } from '../cache-waits.ts'
import { ApiError } from '../errors.ts'
import { type AnyRoute, LISTENERS, route } from '../route.ts'
import { Nothing, ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'organizations' | 'organizationCache'>

/** `DELETE /v1/organizations/{organization}`: a platform admin's, and only without namespaces. */
export function deleteOrganization({ store, scopes, organizations, organizationCache }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: ORGANIZATION_PATH,
    on: LISTENERS,
    id: 'deleteOrganization',
    summary: 'Delete an organization that has no namespaces (platform admin).',
    params: OrganizationParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params, ifMatch }) {
      const organization = await organizations.find(principal, params.organization)
      await scopes.require(principal, { verb: 'delete', resource: 'organizations' })
      const { name, uid } = organization.metadata
      const { items } = await store.list(Namespace, { labels: { [labels.organization]: name } })
      if (items.length > 0) throw new ApiError('conflict', `organization ${name} still has ${items.length} namespaces`)
      await store.delete(Organization, { name }, { uid, resourceVersion: ifMatch })
      await untilGone(organizationCache, organization)
      return { status: 200, data: {} }
    },
  })
}
