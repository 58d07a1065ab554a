import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Kind, Resource } from '../../crds/kind.ts'
import type { ValueDigest } from '../../shared/audit-secrets.ts'
import { auditChanges } from '../../journal/audit-changes.ts'
import { auditedObject, auditScopes } from '../../journal/audited-object.ts'
import type { AuditRecord, JournalWriter } from '../../journal/port.ts'
import { keepEntry } from './keep-entry.ts'
import type { Principal } from '../http/route.ts'

/** What a request did to a resource: `after` alone when it made it or read its credentials, `before` alone when it deleted it. */
export interface AuditedRequest {
  readonly principal: Principal
  readonly requestId: string
  readonly sourceIp: string
  readonly action: AuditRecord['action']
  readonly before?: Resource<Kind> | undefined
  readonly after?: Resource<Kind> | undefined
}

/** Who created, changed or deleted what (contract, "Events", 3). */
export interface Audit {
  /**
   * Resolves when the entry is kept for good, or after two seconds when the journal is away: the change is made by then, and its entry
   * follows. Never throws.
   */
  readonly record: (request: AuditedRequest) => Promise<void>
}

export interface AuditDeps {
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Logger
  readonly now: () => Date
  readonly digest: ValueDigest
  /** Milliseconds that an answer waits for its entry. */
  readonly waitMs?: number
}

/** Where there is no journal to keep entries. */
export const noAudit: Audit = { record: () => Promise.resolve() }

const WAIT_MS = 2_000
const API_TOKEN_USER = 'mooring:api-token:'

export function createAudit({ journal, log, now, digest, waitMs = WAIT_MS }: AuditDeps): Audit {
  return {
    async record(request) {
      const entries = entriesOf(request, { at: now().getTime(), digest })
      const about = { requestId: request.requestId }
      await Promise.all(entries.map((entry) => keepEntry({ journal, log, waitMs }, entry, about)))
    },
  }
}

/** The entries of a request, one in each place where its resource is looked for; none when there is no resource. */
function entriesOf(
  request: AuditedRequest,
  { at, digest }: Pick<AuditDeps, 'digest'> & { readonly at: number },
): readonly AuditRecord[] {
  const { principal, requestId, sourceIp, action, before, after } = request
  const object = after ?? before
  const audited = object && auditedObject(object)
  if (!audited) return []
  const isRead = action === 'read'
  return auditScopes(object).map((namespace) => ({
    ...{ id: randomUUIDv7(), at, namespace },
    actor: { name: principal.user, kind: principal.user.startsWith(API_TOKEN_USER) ? 'apiToken' : 'user' },
    ...{ via: 'rest', action, resource: audited.resource },
    generation: isRead ? null : (after?.metadata.generation ?? null),
    changes: isRead ? [] : auditChanges(before && auditedObject(before), after && audited, digest),
    ...{ sourceIp, requestId },
  }))
}
