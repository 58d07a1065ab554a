import { auditPage, AuditQuery } from './audit-log.ts'
import type { JournalDeps } from './journal-deps.ts'
import { AuditEntryView } from './journal-views.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams } from '../tenancy/tenancy-deps.ts'

/** `GET …/namespaces/{namespace}/audit`: audit entries of a namespace, newest first, deleted resources included. */
export function listAuditEntries(deps: JournalDeps): AnyRoute {
  const { scopes } = deps
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/audit`,
    on: ['shared'],
    id: 'listAuditEntries',
    summary: 'List the audit entries of a namespace: creations, changes, deletions and reads of credentials.',
    params: NamespaceParams,
    query: AuditQuery,
    replies: { 200: listOf('entries', AuditEntryView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'tunnels', namespace })
      return { status: 200, data: await auditPage(deps, namespace, query) }
    },
  })
}
