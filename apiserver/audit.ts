import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import type { Kind, Resource } from '../crds/kind.ts'
import { auditedResource, type Spec } from '../journal/audited-resource.ts'
import type { AuditRecord, JournalWriter } from '../journal/port.ts'
import { specChanges } from '../journal/spec-changes.ts'
import { keepEntry } from './keep-entry.ts'
import type { Principal } from './route.ts'

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

/** Where there is no journal to keep entries. */
export const noAudit: Audit = { record: () => Promise.resolve() }

const WAIT_MS = 2_000
const API_TOKEN_USER = 'mooring:api-token:'

export function createAudit({ journal, log, now, waitMs = WAIT_MS }: AuditDeps): Audit {
  return {
    async record(request) {
      const entry = entryOf(request, now().getTime())
      if (entry) await keepEntry({ journal, log, waitMs }, entry, { requestId: request.requestId })
    },
  }
}

/** The entry of a request; undefined when there is no resource. */
function entryOf({ principal, requestId, sourceIp, action, before, after }: AuditedRequest, at: number): AuditRecord | undefined {
  const object = after ?? before
  if (!object) return undefined
  const spec = specOf(object)
  const { namespace = '' } = object.metadata
  return {
    id: randomUUIDv7(),
    at,
    namespace,
    actor: { name: principal.user, kind: principal.user.startsWith(API_TOKEN_USER) ? 'apiToken' : 'user' },
    via: 'rest',
    action,
    resource: auditedResource(object, spec),
    generation: after?.metadata.generation ?? null,
    changes: specChanges(before && specOf(before), spec === undefined || !after ? undefined : spec),
    sourceIp,
    requestId,
  }
}

function specOf(object: Resource<Kind>): Spec | undefined {
  return 'spec' in object ? (object.spec as Spec) : undefined
}
