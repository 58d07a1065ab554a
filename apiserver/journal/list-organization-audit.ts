import { isSlug } from '../../crds/names.ts'
import { organizationScope } from '../../journal/audited-object.ts'
import { auditPage, AuditQuery } from './audit-log.ts'
import type { JournalDeps } from './journal-deps.ts'
import { AuditEntryView } from './journal-views.ts'
import { createOrganizations } from '../tenancy/organizations.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf, ORGANIZATION_PATH, OrganizationParams } from '../tenancy/tenancy-deps.ts'

/** `GET /v1/organizations/{organization}/audit`: audit entries of an organization and its namespaces, deleted ones included. */
export function listOrganizationAudit(deps: JournalDeps): AnyRoute {
  const { scopes, access } = deps
  const organizations = createOrganizations(deps)
  return route({
    method: 'get',
    path: `${ORGANIZATION_PATH}/audit`,
    on: ['shared'],
    id: 'listOrganizationAudit',
    summary: 'List the creations and deletions of an organization and its namespaces (platform admin).',
    description: 'Actions in a namespace are in the audit log of that namespace.',
    params: OrganizationParams,
    query: AuditQuery,
    replies: { 200: listOf('entries', AuditEntryView) },
    async handle({ principal, params: { organization }, query }) {
      const seesAll = isSlug(organization) && (await access.may(principal, { verb: 'list', resource: 'organizations' }))
      // Entries outlive their organization, for callers who may list all organizations.
      if (!seesAll) await organizations.find(principal, organization)
      await scopes.require(principal, { verb: 'list', resource: 'organizations' })
      return { status: 200, data: await auditPage(deps, organizationScope(organization), query) }
    },
  })
}
