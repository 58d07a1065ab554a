/** One request through a tunnel (contract, "Events", 4; surface, section 5). */
export interface RequestRecord {
  /** UUIDv7, made when its head had arrived: it is what the log is sorted by. No two records have the same; what is shipped again after a failure adds nothing. */
  readonly id: string
  /** uid of the Tunnel */
  readonly tunnel: string
  /** When its head had arrived, in milliseconds since the epoch. */
  readonly at: number
  readonly method: string
  /** Without its query, which may hold secrets. */
  readonly path: string
  readonly status: number
  readonly durationMs: number
  /** Bytes of the bodies. */
  readonly bytesIn: number
  readonly bytesOut: number
  readonly sourceIp: string
  readonly origin: 'backend' | 'edge'
  /** Why the edge answered: `ip_denied`, `tunnel_offline` … */
  readonly reason: string | null
  readonly protocol: 'http/1.1' | 'h2'
}

/** A client that came, went, or was refused (contract, "Connection event record"). */
export interface ConnectionRecord {
  readonly id: string
  readonly tunnel: string
  readonly at: number
  readonly type: 'connect' | 'disconnect' | 'refused'
  /** Which edge it happened at: the name of its pod, or `embedded`. */
  readonly edge: string
  readonly clientIp: string
  readonly authMethod: 'key' | 'token' | null
  readonly sessionId: string
  readonly keyFingerprint: string | null
  readonly passwordId: string | null
  /** Why it went or was refused. */
  readonly reason: string | null
  /** Of the connection, once it has ended. */
  readonly durationMs: number | null
}

/** How an entry names a resource, by the names of the REST API. */
export interface AuditedResource {
  readonly kind: string
  readonly id: string
  readonly name: string
  /** Of a tunnel that had one by then; readers get it with every entry of the tunnel once one entry has it. */
  readonly hostname?: string
}

/** Who did what to a resource. */
export interface AuditRecord {
  readonly id: string
  readonly at: number
  /** Namespace of the resource, which its readers have a role in; of an organization, see `organizationScope` (audited-object.ts). */
  readonly namespace: string
  readonly actor: { readonly name: string; readonly kind: string } | null
  readonly via: 'rest' | 'kubectl' | 'unknown'
  /** `read`: credentials were handed out. */
  readonly action: 'create' | 'update' | 'delete' | 'read'
  readonly resource: AuditedResource
  /** `metadata.generation` that the write led to; null of a deletion. */
  readonly generation: number | null
  readonly changes: readonly { readonly path: string; readonly from: unknown; readonly to: unknown }[]
  readonly sourceIp: string | null
  readonly requestId: string | null
}

/** Newest first. `before`: the id of the last record of the page before. */
export interface Page {
  readonly limit: number
  readonly before?: string | undefined
}

/** Half-open, in milliseconds since the epoch. */
export interface Span {
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** The same with both ends. */
export interface WholeSpan {
  readonly from: number
  readonly to: number
}

export interface RequestFilter extends Span {
  readonly tunnel: string
  readonly method?: string | undefined
  readonly status?: number | undefined
  /** 1 to 5 */
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
  /** Refused logins too. */
  readonly refused: boolean
}

export interface AuditFilter extends Span {
  readonly namespace: string
  readonly kind?: string | undefined
  /** `resource.id` */
  readonly id?: string | undefined
  /** Resources that an entry of this namespace has this hostname of. */
  readonly hostname?: string | undefined
  readonly actor?: string | undefined
  readonly action?: AuditRecord['action'] | undefined
}

/** What the dashboard shows of a tunnel (contract, "Tunnel behaviours"). */
export interface Stats {
  readonly requests: number
  /** Of the answers of the backend; null without any. */
  readonly averageResponseTimeMs: number | null
  readonly statusClasses: Readonly<Record<'1xx' | '2xx' | '3xx' | '4xx' | '5xx', number>>
  readonly edgeAnswered: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The ten with most requests. */
  readonly topClientIps: readonly { readonly ip: string; readonly requests: number }[]
  /** One entry a minute, or an hour for spans of more than a day; those without a request are left out. */
  readonly series: readonly { readonly at: number; readonly requests: number; readonly errors: number }[]
}

/** Returns {@link Stats.averageResponseTimeMs}. `edge`: how many of the requests the edge answered; `ms`: sum of the backend's response times. */
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

/** One write that the audit log may have an entry of. */
export interface AuditedChange {
  /** uid of the resource */
  readonly resource: string
  /** What the write led to; null: its deletion. */
  readonly generation: number | null
}

/** How edges, apiserver and operator write. */
export interface JournalWriter {
  /** Takes it; it is on disk some milliseconds later. Never blocks and never throws: what cannot be kept is counted. */
  request(record: RequestRecord): void
  /** Resolves when it is kept for good. */
  connection(record: ConnectionRecord): Promise<void>
  /**
   * An entry that says `unknown` is not kept where there is one of that generation, or of that deletion, already, and gives way to another that
   * comes late, as from a spool.
   */
  audit(record: AuditRecord): Promise<void>
}

/** How the apiserver and the operator read. */
export interface JournalReader {
  requests(filter: RequestFilter, page: Page): Promise<readonly RequestRecord[]>
  connections(filter: ConnectionFilter, page: Page): Promise<readonly ConnectionRecord[]>
  auditEntries(filter: AuditFilter, page: Page): Promise<readonly AuditRecord[]>
  /** Those of them that have an entry. */
  audited(changes: readonly AuditedChange[]): Promise<readonly AuditedChange[]>
  stats(tunnel: string, span: WholeSpan): Promise<Stats>
  /** Sessions that have a connect and no disconnect: what an edge that was killed leaves. */
  openSessions(): Promise<readonly ConnectionRecord[]>
  /** By tunnel: its open sessions, and when the last client came. Tunnels that never had one are left out. */
  presence(
    tunnels: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly sessions: number; readonly lastConnectedAt: number }>>
  /** Called with each request of the tunnel that is kept from now on. Returns how to stop that. */
  follow(tunnel: string, listener: (record: RequestRecord) => void): () => void
}

export interface Journal extends JournalWriter, JournalReader, AsyncDisposable {}
