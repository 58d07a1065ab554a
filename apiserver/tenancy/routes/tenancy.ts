import type { AnyRoute } from '../../http/route.ts'
import { createTenancyDeps, type TenancyWiring } from '../tenancy-deps.ts'
import { createApiToken } from './create-api-token.ts'
import { createNamespace } from './create-namespace.ts'
import { createOrganization } from './create-organization.ts'
import { deleteApiToken } from './delete-api-token.ts'
import { deleteMember } from './delete-member.ts'
import { deleteNamespace } from './delete-namespace.ts'
import { deleteOrganization } from './delete-organization.ts'
import { getApiToken } from './get-api-token.ts'
import { getMe } from './get-me.ts'
import { getNamespace } from './get-namespace.ts'
import { getOrganization } from './get-organization.ts'
import { listApiTokens } from './list-api-tokens.ts'
import { listMembers } from './list-members.ts'
import { listNamespaces } from './list-namespaces.ts'
import { listOrganizations } from './list-organizations.ts'
import { putMember } from './put-member.ts'

export type { TenancyWiring }

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
