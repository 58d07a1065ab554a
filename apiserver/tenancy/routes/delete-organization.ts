import { Namespace } from '../../../crds/core.ts'
import { labels } from '../../../crds/names.ts'
import { Organization } from '../../../crds/organization.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import type { Store } from '../../../store/port.ts'
import { untilGone } from '../../resources/cache-waits.ts'
import { deleteExpected } from '../../resources/delete-expected.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { Nothing, ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'
import { counted } from '../../resources/nouns.ts'

/** Returns the names of an organization's namespaces: TenantNamespaces (desired) and Namespaces (existing). */
async function namespacesOf(store: Store, organization: string): Promise<ReadonlySet<string>> {
  const [desired, existing] = await Promise.all([
    store.list(TenantNamespace),
    store.list(Namespace, { labels: { [labels.organization]: organization } }),
  ])
  const own = desired.items.filter(({ spec }) => spec.organization === organization)
  return new Set([...own, ...existing.items].map(({ metadata }) => metadata.name))
}

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'organizations' | 'organizationCache' | 'audit'>

/** `DELETE /v1/organizations/{organization}`: for platform admins; only an organization without namespaces. */
export function deleteOrganization({ store, scopes, organizations, organizationCache, audit }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: ORGANIZATION_PATH,
    on: LISTENERS,
    id: 'deleteOrganization',
    summary: 'Delete an organization that has no namespaces (platform admin).',
    params: OrganizationParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const organization = await organizations.find(principal, params.organization)
      await scopes.require(principal, { verb: 'delete', resource: 'organizations' })
      const { name } = organization.metadata
      const count = (await namespacesOf(store, name)).size
      if (count > 0)
        throw new ApiError('conflict', `organization ${name} still has ${counted(count, TenantNamespace)}; delete them first`)
      await deleteExpected(store, Organization, organization, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: organization })
      await untilGone(organizationCache, organization)
      return { status: 200, data: {} }
    },
  })
}
