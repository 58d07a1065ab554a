import { auditPage, AuditQuery } from './audit-log.ts'
import type { JournalDeps } from './journal-deps.ts'
import { AuditEntryView } from './journal-views.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams } from '../tenancy/tenancy-deps.ts'

/** `GET …/namespaces/{namespace}/audit`: who did what in a namespace, newest first; also to what is gone. */
export function listAuditEntries(deps: JournalDeps): AnyRoute {
  const { scopes } = deps
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/audit`,
    on: ['shared'],
    id: 'listAuditEntries',
    summary: 'List who created, changed and deleted what in a namespace, and who read credentials.',
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
