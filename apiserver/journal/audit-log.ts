import { z } from 'zod'
import type { JournalDeps } from './journal-deps.ts'
import { AUDIT_ACTIONS, AuditEntryView, auditEntryView, journalPage, pageOf, requireOrder, SpanQuery } from './journal-schemas.ts'
import { type AnyRoute, route } from '../http/route.ts'
import {
  listOf,
  NAMESPACE_PATH,
  NamespaceParams,
  ORGANIZATION_PATH,
  OrganizationParams,
  createOrganizations,
} from '../tenancy/tenancy-deps.ts'
import { isSlug } from '../../crds/names.ts'
import { AUDITED_KINDS, organizationScope } from '../../journal/audit-entry.ts'
import { HOSTNAME, type Tunnel } from '../../crds/tunnel.ts'
import type { AuditFilter, AuditRecord, JournalReader } from '../../journal/port.ts'
import type { Cache } from '../../store/cache.ts'
import { PageQuery } from '../http/paging.ts'

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

/** Query parameters of a list of audit entries. */
const AuditQuery = z.object({
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
type AuditQuery = z.output<typeof AuditQuery>

export interface AuditLogDeps {
  readonly journal: Pick<JournalReader, 'auditEntries'>
  /** Cache with `tunnelLookupIndexes` (tunnel-lookup.ts). */
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'byIndex' | 'byUid'>
}

/** Returns the data of one page of audit entries, newest first. @throws ApiError `invalid_request`; errors of the journal */
async function auditPage({ journal, tunnels }: AuditLogDeps, namespace: string, query: AuditQuery) {
  requireOrder(query)
  const { limit, cursor, id, ...filter } = query
  const search = { ...filter, ...resourceNamed(id), namespace }
  const { shown, nextCursor } = pageOf(await journal.auditEntries(search, journalPage({ limit, cursor })), limit)
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
