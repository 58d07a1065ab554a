/** One HTTP request to a tunnel. */
export interface RequestRecord {
  /**
   * UUIDv7 of the time when the request head had arrived; the log is sorted by it. A record whose id is already kept adds
   * nothing.
   */
  readonly id: string
  /** uid of the Tunnel */
  readonly tunnel: string
  /** Time when the request head had arrived, in milliseconds since the epoch. */
  readonly at: number
  readonly method: string
  /** Path without the query, which may hold secrets. */
  readonly path: string
  readonly status: number
  readonly durationMs: number
  /** Bytes of the request body and, in `bytesOut`, of the response body. */
  readonly bytesIn: number
  readonly bytesOut: number
  readonly sourceIp: string
  readonly origin: 'backend' | 'edge'
  /** Reason of a response of the edge: `ip_denied`, `tunnel_offline`; null for a response of the backend. */
  readonly reason: string | null
  readonly protocol: 'http/1.1' | 'h2'
}

/** A client that connected, disconnected, or was refused at login. */
export interface ConnectionRecord {
  readonly id: string
  readonly tunnel: string
  readonly at: number
  readonly type: 'connect' | 'disconnect' | 'refused'
  /** Edge that reports the event: the name of its pod, or `embedded`. */
  readonly edge: string
  readonly clientIp: string
  readonly authMethod: 'key' | 'token' | null
  readonly sessionId: string
  readonly keyFingerprint: string | null
  readonly passwordId: string | null
  /** Reason of a disconnect or of a refusal. */
  readonly reason: string | null
  /** Duration of the connection in milliseconds; null until it has ended. */
  readonly durationMs: number | null
}

/** Resource of an audit entry, under the names of the REST API. */
export interface AuditedResource {
  readonly kind: string
  readonly id: string
  readonly name: string
  /** Hostname of a tunnel, from the first entry that has it. Readers return it with every entry of the tunnel. */
  readonly hostname?: string
}

/** Audit entry: an actor, an action and a resource. */
export interface AuditRecord {
  readonly id: string
  readonly at: number
  /** Namespace of the resource; readers need a role in it. For an organization see `organizationScope` in audit-entry.ts. */
  readonly namespace: string
  readonly actor: { readonly name: string; readonly kind: string } | null
  readonly via: 'rest' | 'kubectl' | 'unknown'
  /** `read` is a request that returned credentials. */
  readonly action: 'create' | 'update' | 'delete' | 'read'
  readonly resource: AuditedResource
  /** `metadata.generation` after the write; null for a deletion. */
  readonly generation: number | null
  readonly changes: readonly { readonly path: string; readonly from: unknown; readonly to: unknown }[]
  readonly sourceIp: string | null
  readonly requestId: string | null
}

// Retention of records in days, the same in SQLite and PostgreSQL: docs/api.md, "Request log and statistics" and "Audit log".

/** Retention of requests. A day of requests is removed as a whole, once its last request is this old. */
export const REQUEST_DAYS = 7
/** Retention of connections and of the sums of requests by minute. */
export const EVENT_DAYS = 90
/** Retention of audit entries. */
export const AUDIT_DAYS = 400
/** Retention of request counts by address and minute, which serve the span of the request log only. */
export const CLIENT_MINUTE_DAYS = REQUEST_DAYS + 1

/** One page of a list, newest first. `before` is the id of the last record of the page before. */
export interface Page {
  readonly limit: number
  readonly before?: string | undefined
}

/** Half-open time range, in milliseconds since the epoch. */
export interface Span {
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** Half-open time range with both ends, in milliseconds since the epoch. */
export interface WholeSpan {
  readonly from: number
  readonly to: number
}

export interface RequestFilter extends Span {
  readonly tunnel: string
  readonly method?: string | undefined
  readonly status?: number | undefined
  /** First digit of the status, 1 to 5. */
  readonly statusClass?: number | undefined
  readonly sourceIp?: string | undefined
  readonly pathPrefix?: string | undefined
  readonly origin?: RequestRecord['origin'] | undefined
  readonly reason?: string | undefined
}

export interface ConnectionFilter extends Span {
  readonly tunnel: string
  readonly type?: 'connect' | 'disconnect' | undefined
  readonly clientIp?: string | undefined
  /** Whether refused logins are included. */
  readonly refused: boolean
}

export interface AuditFilter extends Span {
  readonly namespace: string
  readonly kind?: string | undefined
  /** Value of `resource.id`. */
  readonly id?: string | undefined
  /** Selects the entries of the tunnels that have had this hostname in the namespace. */
  readonly hostname?: string | undefined
  readonly actor?: string | undefined
  readonly action?: AuditRecord['action'] | undefined
}

/** Request statistics of a tunnel, as the dashboard shows them. */
export interface Stats {
  readonly requests: number
  /** Average response time of the backend in milliseconds; null without a response of the backend. */
  readonly averageResponseTimeMs: number | null
  readonly statusClasses: Readonly<Record<'1xx' | '2xx' | '3xx' | '4xx' | '5xx', number>>
  readonly edgeAnswered: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The ten client addresses with most requests. */
  readonly topClientIps: readonly { readonly ip: string; readonly requests: number }[]
  /** One entry for each minute, or for each hour in spans of more than a day. Entries without a request are left out. */
  readonly series: readonly { readonly at: number; readonly requests: number; readonly errors: number }[]
}

/**
 * Returns {@link Stats.averageResponseTimeMs}. `edge` is the number of requests that the edge answered, `ms` the sum of the
 * backend's response times.
 */
export function averageOf({
  requests,
  edge,
  ms,
}: {
  readonly requests: number
  readonly edge: number
  readonly ms: number
}): number | null {
  return requests === edge ? null : ms / (requests - edge)
}

/** One write to a resource, which the audit log may have an entry of. */
export interface AuditedChange {
  /** uid of the resource */
  readonly resource: string
  /** `metadata.generation` after the write; null for the deletion. */
  readonly generation: number | null
}

/** Writing side of the journal, for edges, apiserver and operator. */
export interface JournalWriter {
  /**
   * Accepts a request record, which is on disk some milliseconds later. Never blocks and never throws: dropped records are
   * counted.
   */
  request(record: RequestRecord): void
  /** Resolves when the record is durable. */
  connection(record: ConnectionRecord): Promise<void>
  /**
   * Resolves when the entry is durable. An entry with `via: 'unknown'` is not kept where the same generation or deletion has an
   * entry already. A later entry with a known `via`, such as one from a spool, replaces it.
   */
  audit(record: AuditRecord): Promise<void>
}

/** Reading side of the journal, for apiserver and operator. */
export interface JournalReader {
  requests(filter: RequestFilter, page: Page): Promise<readonly RequestRecord[]>
  connections(filter: ConnectionFilter, page: Page): Promise<readonly ConnectionRecord[]>
  auditEntries(filter: AuditFilter, page: Page): Promise<readonly AuditRecord[]>
  /** Returns the changes that have an audit entry. */
  audited(changes: readonly AuditedChange[]): Promise<readonly AuditedChange[]>
  stats(tunnel: string, span: WholeSpan): Promise<Stats>
  /** Returns the connect records of sessions without a disconnect. A killed edge leaves such sessions. */
  openSessions(): Promise<readonly ConnectionRecord[]>
  /**
   * Returns, by tunnel, the number of open sessions and the time of the last connect in milliseconds since the epoch. Tunnels
   * without any connect are left out.
   */
  presence(
    tunnels: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly sessions: number; readonly lastConnectedAt: number }>>
  /** Calls `listener` with each request of the tunnel that is kept from now on. Returns a function that removes the listener. */
  follow(tunnel: string, listener: (record: RequestRecord) => void): () => void
}

export interface Journal extends JournalWriter, JournalReader, AsyncDisposable {}
