import type {
  AuditedChange,
  AuditFilter,
  AuditRecord,
  ConnectionFilter,
  ConnectionRecord,
  Page,
  RequestFilter,
  RequestRecord,
  Stats,
  WholeSpan,
} from '../port.ts'

/** Question to the writing thread. Each gets exactly one reply. */
export type WriterRequest =
  | {
      readonly type: 'keep'
      /** Time in milliseconds since the epoch: records past their retention at this time are not kept. */
      readonly now: number
      /** Batches in the format of request-text.ts, UTF-8. */
      readonly requests: readonly Uint8Array[]
      /** Connections and audit entries, each as JSON. */
      readonly connections: readonly string[]
      readonly audit: readonly string[]
    }
  | { readonly type: 'sweep'; readonly now: number }
  | { readonly type: 'close' }

export type WriterReply =
  /** `refused` is the number of requests that are invalid or of a day that is not kept. */
  | { readonly type: 'kept'; readonly refused: number }
  | { readonly type: 'swept'; readonly more: boolean }
  | { readonly type: 'closed' }

/** Presence of a tunnel's clients, as the port returns it. */
export interface Presence {
  readonly sessions: number
  readonly lastConnectedAt: number
}

/** Question to the reading thread. Each gets exactly one reply. */
export type ReaderRequest =
  | { readonly type: 'requests'; readonly filter: RequestFilter; readonly page: Page }
  | { readonly type: 'connections'; readonly filter: ConnectionFilter; readonly page: Page }
  | { readonly type: 'audit'; readonly filter: AuditFilter; readonly page: Page }
  | { readonly type: 'audited'; readonly changes: readonly AuditedChange[] }
  | { readonly type: 'stats'; readonly tunnel: string; readonly span: WholeSpan }
  | { readonly type: 'openSessions' }
  | { readonly type: 'presence'; readonly tunnels: readonly string[] }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'close' }

export type ReaderReply =
  | { readonly type: 'requests'; readonly records: readonly RequestRecord[] }
  | { readonly type: 'connections'; readonly records: readonly ConnectionRecord[] }
  | { readonly type: 'audit'; readonly records: readonly AuditRecord[] }
  | { readonly type: 'audited'; readonly changes: readonly AuditedChange[] }
  | { readonly type: 'stats'; readonly stats: Stats }
  | { readonly type: 'presence'; readonly presence: ReadonlyMap<string, Presence> }
  | { readonly type: 'done' }
