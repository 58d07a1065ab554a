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
import type { DatabaseSample, KeptSample, UsageFilter, UsageRecord, UsageSum } from '../databases.ts'
import type { DeliveryAttempt, DeliveryRecord, DueDeliveries, DueQuery, FailureStreak, NewDelivery } from '../webhooks.ts'

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
  | { readonly type: 'dispatch'; readonly events: readonly string[]; readonly deliveries: readonly NewDelivery[] }
  | { readonly type: 'addDelivery'; readonly delivery: NewDelivery }
  | { readonly type: 'finish'; readonly attempt: DeliveryAttempt }
  | { readonly type: 'abandon'; readonly webhook: string; readonly error: string; readonly manual: boolean }
  | { readonly type: 'forgive'; readonly webhook: string }
  | { readonly type: 'keepDatabases'; readonly usage: readonly UsageRecord[]; readonly samples: readonly KeptSample[] }
  | { readonly type: 'close' }

export type WriterReply =
  /** `refused` is the number of requests that are invalid or of a day that is not kept. */
  | { readonly type: 'kept'; readonly refused: number }
  | { readonly type: 'swept'; readonly more: boolean }
  | { readonly type: 'finished'; readonly streak: FailureStreak | undefined }
  | { readonly type: 'done' }
  | { readonly type: 'closed' }

/** Presence of a tunnel's clients, as the port returns it. */
export interface Presence {
  readonly sessions: number
  readonly lastConnectedAt: number
}

/** Question about the outbox of webhooks. */
export type OutboxQuestion =
  | { readonly type: 'events'; readonly limit: number }
  | { readonly type: 'deliveries'; readonly webhook: string; readonly page: Page }
  | { readonly type: 'delivery'; readonly webhook: string; readonly id: string }
  | { readonly type: 'due'; readonly query: DueQuery }

/** Question about the records of dedicated databases. */
export type DatabaseQuestion =
  | { readonly type: 'usage'; readonly filter: UsageFilter }
  | { readonly type: 'usageUntil'; readonly databases: readonly string[] }
  | { readonly type: 'samples'; readonly database: string; readonly span: WholeSpan; readonly stepMs: number }

export type DatabaseReply =
  | { readonly type: 'usage'; readonly sums: readonly UsageSum[] }
  | { readonly type: 'usageUntil'; readonly ends: ReadonlyMap<string, number> }
  | { readonly type: 'samples'; readonly samples: readonly DatabaseSample[] }

/** Question to the reading thread. Each gets exactly one reply. */
export type ReaderRequest =
  | { readonly type: 'requests'; readonly filter: RequestFilter; readonly page: Page }
  | { readonly type: 'connections'; readonly filter: ConnectionFilter; readonly page: Page }
  | { readonly type: 'audit'; readonly filter: AuditFilter; readonly page: Page }
  | { readonly type: 'audited'; readonly changes: readonly AuditedChange[] }
  | { readonly type: 'stats'; readonly tunnel: string; readonly span: WholeSpan }
  | { readonly type: 'openSessions' }
  | { readonly type: 'presence'; readonly tunnels: readonly string[] }
  | { readonly type: 'outbox'; readonly question: OutboxQuestion }
  | { readonly type: 'databases'; readonly question: DatabaseQuestion }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'close' }

export type ReaderReply =
  | { readonly type: 'requests'; readonly records: readonly RequestRecord[] }
  | { readonly type: 'connections'; readonly records: readonly ConnectionRecord[] }
  | { readonly type: 'audit'; readonly records: readonly AuditRecord[] }
  | { readonly type: 'audited'; readonly changes: readonly AuditedChange[] }
  | { readonly type: 'stats'; readonly stats: Stats }
  | { readonly type: 'presence'; readonly presence: ReadonlyMap<string, Presence> }
  | { readonly type: 'deliveries'; readonly deliveries: readonly DeliveryRecord[] }
  | { readonly type: 'due'; readonly due: DueDeliveries }
  | DatabaseReply
  | { readonly type: 'done' }
