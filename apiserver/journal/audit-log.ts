import { z } from 'zod'
import { HOSTNAME, type Tunnel } from '../../crds/tunnel.ts'
import { AUDITED_KINDS } from '../../journal/audited-object.ts'
import type { AuditFilter, AuditRecord, JournalReader } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { journalPage, requireOrder, shownOf, SpanQuery } from './journal-query.ts'
import { AUDIT_ACTIONS, auditEntryView } from './journal-views.ts'
import { PageQuery } from '../http/paging.ts'

/** Query parameters of a list of audit entries. */
export const AuditQuery = z.object({
  ...PageQuery,
  ...SpanQuery,
  kind: z.enum(AUDITED_KINDS).optional().describe('Only resources of this kind.'),
  id: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Only the resource with this id, which may be deleted: an id, the hostname of a tunnel, or the subject of a member.',
    ),
  actor: z.string().min(1).max(512).optional().describe('Only actions of this user.'),
  action: z.enum(AUDIT_ACTIONS).optional().describe('Only this action.'),
})
export type AuditQuery = z.output<typeof AuditQuery>

export interface AuditLogDeps {
  readonly journal: Pick<JournalReader, 'auditEntries'>
  /** Cache with `tunnelLookupIndexes` (tunnel-lookup.ts). */
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'byIndex' | 'byUid'>
}

/** Returns the data of one page of audit entries, newest first. @throws ApiError `invalid_request`; errors of the journal */
export async function auditPage({ journal, tunnels }: AuditLogDeps, namespace: string, query: AuditQuery) {
  requireOrder(query)
  const { limit, cursor, id, ...filter } = query
  const search = { ...filter, ...resourceNamed(id), namespace }
  const { shown, nextCursor } = shownOf(await journal.auditEntries(search, journalPage({ limit, cursor })), limit)
  return { entries: shown.map((record) => auditEntryView(withHostname(record))), nextCursor }

  /** Returns the filter for a resource. An existing tunnel is filtered by id: it gets its hostname only after its creation was recorded. */
  function resourceNamed(text: string | undefined): Pick<AuditFilter, 'id' | 'hostname'> {
    if (text === undefined) return {}
    const lower = text.toLowerCase()
    if (!HOSTNAME.test(lower)) return { id: UUID.test(lower) ? lower : text }
    const live = tunnels.byIndex('hostname', lower).find(({ metadata }) => metadata.namespace === namespace)
    return live ? { id: live.metadata.uid } : { hostname: lower }
  }

  function withHostname(record: AuditRecord): AuditRecord {
    const { resource } = record
    if (resource.kind !== 'Tunnel' || resource.hostname !== undefined) return record
    const hostname = tunnels.byUid(resource.id)?.status?.hostname
    return hostname === undefined ? record : { ...record, resource: { ...resource, hostname } }
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
