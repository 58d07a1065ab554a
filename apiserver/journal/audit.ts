import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Kind, Resource } from '../../crds/kind.ts'
import { type ValueDigest, auditChanges, auditedObject, auditScopes } from '../../journal/audit-entry.ts'
import type { AuditRecord, JournalWriter } from '../../journal/port.ts'
import type { Principal } from '../http/route.ts'
import { rejectOnAbort, withinBudget } from '../resources/cache-waits.ts'

/** Effect of a request on a resource: only `after` for a creation or a read of credentials, only `before` for a deletion. */
export interface AuditedRequest {
  readonly principal: Principal
  readonly requestId: string
  readonly sourceIp: string
  readonly action: AuditRecord['action']
  readonly before?: Resource<Kind> | undefined
  readonly after?: Resource<Kind> | undefined
}

/** Recorder of audit entries for REST requests (docs/api.md, "Audit log"). */
export interface Audit {
  /**
   * Resolves when the entry is written, or after two seconds when the journal is unavailable: the change is already made, and the entry is written
   * later. Never throws.
   */
  readonly record: (request: AuditedRequest) => Promise<void>
}

export interface AuditDeps {
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Logger
  readonly now: () => Date
  readonly digest: ValueDigest
  /** Maximum wait of an answer for its entry, in milliseconds. */
  readonly waitMs?: number
}

/** Recorder of an installation without a journal. */
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

/** Returns the entries of a request, one for each scope in which the resource is listed; none without a resource. */
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
    id: randomUUIDv7(),
    at,
    namespace,
    actor: { name: principal.user, kind: principal.user.startsWith(API_TOKEN_USER) ? 'apiToken' : 'user' },
    via: 'rest',
    action,
    resource: audited.resource,
    generation: isRead ? null : (after?.metadata.generation ?? null),
    changes: isRead ? [] : auditChanges(before && auditedObject(before), after && audited, digest),
    sourceIp,
    requestId,
  }))
}

export interface KeepEntryDeps {
  readonly journal: Pick<JournalWriter, 'audit'>
  readonly log: Pick<Logger, 'warn' | 'error'>
  /** Maximum wait of an answer for its entry, in milliseconds. */
  readonly waitMs: number
}

/**
 * Writes an audit entry. Resolves when the entry is written, or after `waitMs` when the journal is unavailable: the change is already made, and the
 * entry is written later. Never throws. `about` goes to the log.
 */
export async function keepEntry({ journal, log, waitMs }: KeepEntryDeps, entry: AuditRecord, about: object): Promise<void> {
  const kept = journal.audit(entry).then(
    () => ({}),
    (error: unknown) => {
      log.error({ err: error, ...about }, 'an audit entry could not be written')
      return {}
    },
  )
  const done = await withinBudget(waitMs, (signal) => Promise.race([kept, rejectOnAbort(signal)]))
  if (!done) log.warn(about, 'the journal is unavailable: an audit entry is queued')
}
