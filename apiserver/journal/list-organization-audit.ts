import { isSlug } from '../../crds/names.ts'
import { organizationScope } from '../../journal/audited-object.ts'
import { auditPage, AuditQuery } from './audit-log.ts'
import type { JournalDeps } from './journal-deps.ts'
import { AuditEntryView } from './journal-views.ts'
import { createOrganizations } from '../tenancy/organizations.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf, ORGANIZATION_PATH, OrganizationParams } from '../tenancy/tenancy-deps.ts'

/** `GET /v1/organizations/{organization}/audit`: what became of an organization and its namespaces, also of those that are gone. */
export function listOrganizationAudit(deps: JournalDeps): AnyRoute {
  const { scopes, access } = deps
  const organizations = createOrganizations(deps)
  return route({
    method: 'get',
    path: `${ORGANIZATION_PATH}/audit`,
    on: ['shared'],
    id: 'listOrganizationAudit',
    summary: 'List who created and deleted an organization and its namespaces (platform admin).',
    description: 'What is done in a namespace is in the audit log of that namespace.',
    params: OrganizationParams,
    query: AuditQuery,
    replies: { 200: listOf('entries', AuditEntryView) },
    async handle({ principal, params: { organization }, query }) {
      const seesAll = isSlug(organization) && (await access.may(principal, { verb: 'list', resource: 'organizations' }))
      // Its entries outlive it, for those who may see all organizations.
      if (!seesAll) await organizations.find(principal, organization)
      await scopes.require(principal, { verb: 'list', resource: 'organizations' })
      return { status: 200, data: await auditPage(deps, organizationScope(organization), query) }
    },
  })
}
