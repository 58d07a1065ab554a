import { z } from 'zod'
import { OrganizationView, organizationView } from '../organizations.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'

/** `GET /v1/organizations/{organization}` */
export function getOrganization({ organizations }: Pick<TenancyDeps, 'organizations'>): AnyRoute {
  return route({
    method: 'get',
    path: ORGANIZATION_PATH,
    on: LISTENERS,
    id: 'getOrganization',
    summary: 'Get one organization.',
    params: OrganizationParams,
    replies: { 200: z.object({ organization: OrganizationView }) },
    async handle({ principal, params }) {
      const organization = await organizations.find(principal, params.organization)
      const etag = organization.metadata.resourceVersion
      return { status: 200, data: { organization: organizationView(organization) }, etag }
    },
  })
}
