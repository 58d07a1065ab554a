import { z } from 'zod'
import { type AnyRoute, LISTENERS, route } from '../http/route.ts'
import { createTenancyDeps, type TenancyDeps, type TenancyWiring } from './tenancy-deps.ts'
import { createApiToken, deleteApiToken, getApiToken, listApiTokens } from './api-tokens.ts'
import { createNamespace, deleteNamespace, getNamespace, listNamespaces } from './namespaces.ts'
import { createOrganization, deleteOrganization, getOrganization, listOrganizations } from './organizations.ts'
import { deleteMember, listMembers, putMember } from './members.ts'
import { ROLES } from '../../crds/names.ts'

const ROUTES = [
  getMe,
  ...[listOrganizations, createOrganization, getOrganization, deleteOrganization],
  ...[listNamespaces, createNamespace, getNamespace, deleteNamespace],
  ...[listMembers, putMember, deleteMember],
  ...[listApiTokens, createApiToken, getApiToken, deleteApiToken],
]

/** Returns the routes of organizations, namespaces, members and API tokens, which both listeners serve. */
export function tenancyRoutes(wiring: TenancyWiring): AnyRoute[] {
  const deps = createTenancyDeps(wiring)
  return ROUTES.map((make) => make(deps))
}

const Me = z
  .object({
    user: z.string(),
    groups: z.array(z.string()),
    namespaces: z.array(z.object({ organization: z.string(), namespace: z.string(), role: z.enum(ROLES) })),
  })
  .meta({ id: 'Me' })

/** `GET /v1/me`: user name, groups and roles of the caller. */
function getMe({ access }: Pick<TenancyDeps, 'access'>): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/me',
    on: LISTENERS,
    id: 'getMe',
    summary: 'Get your user name, your groups and your role in each namespace.',
    replies: { 200: Me },
    async handle({ principal }) {
      const memberships = await access.memberships(principal)
      const namespaces = memberships.map(({ organization, namespace, role }) => ({ organization, namespace, role }))
      return { status: 200, data: { user: principal.user, groups: principal.groups, namespaces } }
    },
  })
}
