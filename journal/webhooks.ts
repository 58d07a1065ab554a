import type { ConnectionRecord, Page } from './port.ts'

/** Delivery of an event to a webhook, before it is in the journal. */
export interface NewDelivery {
  /** UUIDv7; the deliveries of a webhook are sorted by it. */
  readonly id: string
  /** Uid of the TunnelWebhook. */
  readonly webhook: string
  /** Id of the event, which receivers see as `webhook-id`. */
  readonly event: string
  /** Type of the event, such as `tunnel.connected`. */
  readonly type: string
  /**
   * Session of the event. The first attempts of one session's deliveries to one webhook are made in the order of `sequence`.
   * Retries are not ordered. Null when no order is needed.
   */
  readonly session: string | null
  readonly sequence: number
  /** Time of creation in milliseconds since the epoch; also the time of the first attempt. */
  readonly at: number
  /** Whether a person asked for the delivery: a test or a redelivery, which is attempted once. */
  readonly manual: boolean
  /** Request body, JSON; the same for each attempt. */
  readonly body: string
}

/** Delivery with its last attempt. Times are in milliseconds since the epoch. */
export interface DeliveryRecord extends NewDelivery {
  /** Number of finished attempts. */
  readonly attempt: number
  readonly status: 'pending' | 'delivered' | 'failed'
  /** Time of the next attempt; null unless pending. */
  readonly nextAt: number | null
  readonly requestedAt: number | null
  readonly responseStatus: number | null
  readonly durationMs: number | null
  /** Beginning of the response body. */
  readonly responseBody: string | null
  /** Reason of a failure, for the owner of the webhook. */
  readonly error: string | null
}

/** Result of one attempt. */
export interface DeliveryAttempt extends Pick<
  DeliveryRecord,
  'id' | 'attempt' | 'status' | 'nextAt' | 'requestedAt' | 'responseStatus' | 'durationMs' | 'responseBody' | 'error'
> {
  /** Time of the result in milliseconds since the epoch. */
  readonly at: number
  /** Whether the attempt counts for the failure streak of the webhook. */
  readonly counts: boolean
}

/** Failures of a webhook in a row. */
export interface FailureStreak {
  readonly failures: number
  /** Time of the first of these failures in milliseconds since the epoch. */
  readonly since: number
}

export interface DueQuery {
  /** Present time in milliseconds since the epoch. */
  readonly now: number
  /** Maximum number of deliveries. */
  readonly limit: number
  /** Maximum number of deliveries of one webhook. */
  readonly perWebhook: number
  /** Uids of webhooks whose deliveries are left out. */
  readonly busy: readonly string[]
  /** Ids of deliveries that are under way; they are left out. */
  readonly underWay: readonly string[]
}

export interface DueDeliveries {
  /** Deliveries whose time has come, the longest waiting first. A delivery is left out while an earlier one of its session and webhook waits for its first attempt. */
  readonly due: readonly DeliveryRecord[]
  /** Earliest time after `now` at which another delivery is due, in milliseconds since the epoch; undefined without any. */
  readonly nextAt: number | undefined
}

/** Retention of deliveries in days, from their creation. Pending deliveries are kept until they end. */
export const DELIVERY_DAYS = 7
/** Number of newest deliveries of a webhook that are kept; of the older ones only those that are pending. Callers can cause any number of deliveries. */
export const KEPT_MAX = 1_000
/** Maximum number of pending deliveries of a webhook. Beyond it the oldest ones fail. */
export const PENDING_MAX = 10_000
/** Error of a delivery that exceeds {@link PENDING_MAX}. */
export const TOO_MANY_PENDING = 'too many deliveries waited for this webhook'

/** Deliveries of webhooks, for API servers. */
export interface DeliveryLog {
  /** Returns a page of a webhook's deliveries, newest first. */
  list(webhook: string, page: Page): Promise<readonly DeliveryRecord[]>
  find(webhook: string, id: string): Promise<DeliveryRecord | undefined>
  /** Adds a delivery that a person asked for. */
  add(delivery: NewDelivery): Promise<void>
}

/**
 * Outbox of events for webhooks. A connect or disconnect enters it in the transaction that keeps its record, once for each session
 * and type. A second disconnect of a session, such as the real one after `edge_lost`, does not enter it. Neither does a rejected login.
 */
export interface WebhookOutbox extends DeliveryLog {
  /** Returns events that are not dispatched yet, in the order of their records' ids. */
  events(limit: number): Promise<readonly ConnectionRecord[]>
  /**
   * Marks events as dispatched and adds their deliveries, all or nothing. `events` are ids of records. Deliveries of an event that another
   * process has dispatched meanwhile are skipped.
   */
  dispatch(events: readonly string[], deliveries: readonly NewDelivery[]): Promise<void>
  /** Returns the deliveries that may be attempted now. */
  due(query: DueQuery): Promise<DueDeliveries>
  /**
   * Keeps the result of an attempt of a pending delivery. Returns the failure streak of the webhook; undefined after a success, or when the attempt
   * does not count.
   */
  finish(attempt: DeliveryAttempt): Promise<FailureStreak | undefined>
  /** Fails all pending deliveries of a webhook; the manual ones only with `manual`. */
  abandon(webhook: string, error: string, options: { readonly manual: boolean }): Promise<void>
  /** Ends the failure streak of a webhook. */
  forgive(webhook: string): Promise<void>
  /** Calls `listener` when there may be new events or deliveries. Returns a function that removes it. */
  onWork(listener: () => void): () => void
}

/** Part of a journal that holds the outbox. */
export interface WebhookJournal {
  readonly webhooks: WebhookOutbox
}
