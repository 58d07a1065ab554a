import { z } from 'zod'
import type { JournalDeps } from '../journal-deps.ts'
import { journalPage, requireOrder, shownOf, SpanQuery } from '../journal-query.ts'
import { AuditEntryView, auditEntryView } from '../journal-views.ts'
import { PageQuery } from '../paging.ts'
import { type AnyRoute, route } from '../route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams } from '../tenancy-deps.ts'

const Query = z.object({
  ...PageQuery,
  ...SpanQuery,
  kind: z.string().max(64).optional().describe('Only resources of this kind, such as `Tunnel`.'),
  id: z.string().max(64).optional().describe('Only the resource with this id, which may be gone.'),
  actor: z.string().max(512).optional().describe('Only what this user did.'),
  action: z.enum(['create', 'update', 'delete']).optional().describe('Only what was done in this way.'),
})

/** `GET …/audit`: who did what in a namespace, newest first; also to what is gone. */
export function listAuditEntries({ scopes, journal }: JournalDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/audit`,
    on: ['shared'],
    id: 'listAuditEntries',
    summary: 'List who created, changed and deleted what in a namespace.',
    params: NamespaceParams,
    query: Query,
    replies: { 200: listOf('entries', AuditEntryView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'tunnels', namespace })
      requireOrder(query)
      const { limit, cursor, ...filter } = query
      const records = await journal.auditEntries({ ...filter, namespace }, journalPage({ limit, cursor }))
      const { shown, nextCursor } = shownOf(records, limit)
      return { status: 200, data: { entries: shown.map(auditEntryView), nextCursor } }
    },
  })
}
