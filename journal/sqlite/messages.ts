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

/** What the thread that writes is asked. Each gets exactly one reply. */
export type WriterRequest =
  | {
      readonly type: 'keep'
      /** Milliseconds since the epoch: what is past its retention already is not kept. */
      readonly now: number
      /** Batches as request-text.ts has them, UTF-8. */
      readonly requests: readonly Uint8Array[]
      /** Each as JSON. */
      readonly connections: readonly string[]
      readonly audit: readonly string[]
    }
  | { readonly type: 'sweep'; readonly now: number }
  | { readonly type: 'close' }

export type WriterReply =
  /** `refused`: requests that no day table may take, or that are no records. */
  | { readonly type: 'kept'; readonly refused: number }
  | { readonly type: 'swept'; readonly more: boolean }
  | { readonly type: 'closed' }

/** What the port tells of a tunnel's clients. */
export interface Presence {
  readonly sessions: number
  readonly lastConnectedAt: number
}

/** What the thread that reads is asked. */
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
