import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Kind, Resource } from '../crds/kind.ts'
import type { AuditRecord, JournalWriter } from '../journal/port.ts'
import { withinBudget } from './budget.ts'
import type { Principal } from './route.ts'
import { specChanges } from './spec-changes.ts'

/** What a request did to a resource: `after` alone when it made it, `before` alone when it deleted it. */
export interface AuditedRequest {
  readonly principal: Principal
  readonly requestId: string
  readonly sourceIp: string
  readonly action: AuditRecord['action']
  readonly before?: Resource<Kind>
  readonly after?: Resource<Kind>
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
  /** Milliseconds that an answer waits for its entry. */
  readonly waitMs?: number
}

const WAIT_MS = 2_000
const API_TOKEN_USER = 'mooring:api-token:'

export function createAudit({ journal, log, now, waitMs = WAIT_MS }: AuditDeps): Audit {
  async function record(request: AuditedRequest): Promise<void> {
    const { requestId } = request
    const kept = keep(entryOf(request, now().getTime()), requestId)
    const done = await withinBudget(waitMs, (signal) => Promise.race([kept, rejectedBy(signal)]))
    if (!done) log.warn({ requestId }, 'the journal is away: an audit entry waits to be kept')
  }

  async function keep(entry: AuditRecord | undefined, requestId: string): Promise<object> {
    try {
      if (entry) await journal.audit(entry)
    } catch (error) {
      log.error({ err: error, requestId }, 'an audit entry was not kept')
    }
    return {}
  }

  return { record }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

/** The entry of a request; undefined when there is no resource. */
function entryOf({ principal, requestId, sourceIp, action, before, after }: AuditedRequest, at: number): AuditRecord | undefined {
  const object = after ?? before
  if (!object) return undefined
  const spec = specOf(object)
  const { namespace = '', uid, name } = object.metadata
  return {
    id: randomUUIDv7(),
    at,
    namespace,
    actor: { name: principal.user, kind: principal.user.startsWith(API_TOKEN_USER) ? 'apiToken' : 'user' },
    via: 'rest',
    action,
    resource: { kind: object.kind, id: uid, name: typeof spec?.displayName === 'string' ? spec.displayName : name },
    changes: specChanges(before && specOf(before), spec === undefined || !after ? undefined : spec),
    sourceIp,
    requestId,
  }
}

function specOf(object: Resource<Kind>): Readonly<Record<string, unknown>> | undefined {
  return 'spec' in object ? (object.spec as Readonly<Record<string, unknown>>) : undefined
}
