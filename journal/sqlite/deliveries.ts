import type { DatabaseSync } from 'node:sqlite'
import type { ConnectionRecord, Page } from '../port.ts'
import {
  type DeliveryAttempt,
  type DeliveryRecord,
  type DueDeliveries,
  type DueQuery,
  type FailureStreak,
  type NewDelivery,
  KEPT_MAX,
  PENDING_MAX,
  TOO_MANY_PENDING,
} from '../webhooks.ts'

/**
 * Tables of the outbox (journal/webhooks.ts). `tunnel_events` has the records that are not dispatched yet, as JSON. `sequence` orders the deliveries of
 * a session. `next_at` is null unless the delivery is pending.
 */
export const WEBHOOK_TABLES = `
  CREATE TABLE IF NOT EXISTS tunnel_events (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS deliveries (
    id TEXT PRIMARY KEY, webhook TEXT NOT NULL, event TEXT NOT NULL, type TEXT NOT NULL, session TEXT, sequence INTEGER NOT NULL,
    at INTEGER NOT NULL, manual INTEGER NOT NULL, body TEXT NOT NULL, attempt INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'pending', next_at INTEGER, requested_at INTEGER, response_status INTEGER, ms REAL,
    response_body TEXT, error TEXT
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS deliveries_by_webhook ON deliveries (webhook, id);
  CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deliveries_pending ON deliveries (webhook, session, sequence) WHERE next_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS failure_streaks (webhook TEXT PRIMARY KEY, failures INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;
`

/** Writing part of the outbox. Each function must be called within a transaction. */
export interface DeliveryKeeper {
  /** Adds the event of a connect or disconnect whose record was just inserted into `connections`. `json` is the record. */
  readonly event: (record: ConnectionRecord, json: string) => void
  readonly dispatch: (events: readonly string[], deliveries: readonly NewDelivery[]) => void
  readonly add: (delivery: NewDelivery) => void
  readonly finish: (attempt: DeliveryAttempt) => FailureStreak | undefined
  readonly abandon: (webhook: string, error: string, manual: boolean) => void
  readonly forgive: (webhook: string) => void
}

export function createDeliveryKeeper(db: DatabaseSync): DeliveryKeeper {
  const isRepeated = db.prepare(
    'SELECT 1 FROM (SELECT 1 FROM connections WHERE session = ? AND type = ? LIMIT 2) LIMIT 1 OFFSET 1',
  )
  const addEvent = db.prepare('INSERT OR IGNORE INTO tunnel_events (id, record) VALUES (?, ?)')
  const takeEvent = db.prepare('DELETE FROM tunnel_events WHERE id = ?')
  const insert = db.prepare(`
    INSERT OR IGNORE INTO deliveries (id, webhook, event, type, session, sequence, at, manual, body, next_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?7)`)
  const countPending = db.prepare('SELECT count(*) AS pending FROM deliveries WHERE webhook = ? AND next_at IS NOT NULL')
  const failOldest = db.prepare(`
    UPDATE deliveries SET status = 'failed', next_at = NULL, error = '${TOO_MANY_PENDING}'
    WHERE id IN (SELECT id FROM deliveries WHERE webhook = ? AND next_at IS NOT NULL ORDER BY id LIMIT ?)`)
  const prune = db.prepare(`
    DELETE FROM deliveries WHERE webhook = ? AND next_at IS NULL
      AND id <= (SELECT id FROM deliveries WHERE webhook = ? ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_MAX})`)
  const update = db.prepare(`
    UPDATE deliveries SET attempt = ?2, status = ?3, next_at = ?4, requested_at = ?5, response_status = ?6, ms = ?7,
      response_body = ?8, error = ?9
    WHERE id = ?1 AND next_at IS NOT NULL RETURNING webhook`)
  const countFailure = db.prepare(`
    INSERT INTO failure_streaks (webhook, failures, since) VALUES (?, 1, ?)
    ON CONFLICT (webhook) DO UPDATE SET failures = failures + 1 RETURNING failures, since`)
  const clear = db.prepare('DELETE FROM failure_streaks WHERE webhook = ?')
  const abandon = db.prepare(`
    UPDATE deliveries SET status = 'failed', next_at = NULL, error = ?2
    WHERE webhook = ?1 AND next_at IS NOT NULL AND manual <= ?3`)

  function add({ id, webhook, event, type, session, sequence, at, manual, body }: NewDelivery): void {
    insert.run(id, webhook, event, type, session, sequence, at, Number(manual), body)
  }

  function bound(webhook: string): void {
    prune.run(webhook, webhook)
    const excess = Number(countPending.get(webhook)?.pending) - PENDING_MAX
    if (excess > 0) failOldest.run(webhook, excess)
  }

  return {
    event(record, json) {
      if (isRepeated.get(record.sessionId, record.type) === undefined) addEvent.run(record.id, json)
    },
    dispatch(events, deliveries) {
      const taken = new Set(events.filter((id) => takeEvent.run(id).changes === 1))
      const added = deliveries.filter(({ event }) => taken.has(event))
      added.forEach(add)
      new Set(added.map(({ webhook }) => webhook)).forEach(bound)
    },
    add(delivery) {
      add(delivery)
      bound(delivery.webhook)
    },
    finish({ id, attempt, status, nextAt, requestedAt, responseStatus, durationMs, responseBody, error, at, counts }) {
      const found = update.get(id, attempt, status, nextAt, requestedAt, responseStatus, durationMs, responseBody, error)
      const webhook = found?.webhook as string | undefined
      if (webhook === undefined || !counts) return undefined
      if (status !== 'delivered') return { ...countFailure.get(webhook, at) } as unknown as FailureStreak
      clear.run(webhook)
      return undefined
    },
    abandon: (webhook, error, manual) => void abandon.run(webhook, error, Number(manual)),
    forgive: (webhook) => void clear.run(webhook),
  }
}

/** Reading part of the outbox. */
export interface DeliveryReader {
  readonly events: (limit: number) => readonly ConnectionRecord[]
  readonly list: (webhook: string, page: Page) => readonly DeliveryRecord[]
  readonly find: (webhook: string, id: string) => DeliveryRecord | undefined
  readonly due: (query: DueQuery) => DueDeliveries
}

type Row = Readonly<Record<string, unknown>>

export function createDeliveryReader(db: DatabaseSync): DeliveryReader {
  const events = db.prepare('SELECT record FROM tunnel_events ORDER BY id LIMIT ?')
  const list = db.prepare('SELECT * FROM deliveries WHERE webhook = ? AND id < ? ORDER BY id DESC LIMIT ?')
  const find = db.prepare('SELECT * FROM deliveries WHERE webhook = ? AND id = ?')
  const due = db.prepare(`
    SELECT * FROM (
      SELECT d.*, row_number() OVER (PARTITION BY webhook ORDER BY next_at, id) AS place FROM deliveries AS d
      WHERE next_at <= ?1 AND webhook NOT IN (SELECT value FROM json_each(?2)) AND id NOT IN (SELECT value FROM json_each(?3))
        AND (session IS NULL OR NOT EXISTS (
          SELECT 1 FROM deliveries AS e WHERE e.webhook = d.webhook AND e.session = d.session AND e.sequence < d.sequence
            AND e.attempt = 0 AND e.next_at IS NOT NULL
        ))
    ) WHERE place <= ?4 ORDER BY next_at, id LIMIT ?5`)
  const next = db.prepare('SELECT min(next_at) AS next FROM deliveries WHERE next_at > ?')

  return {
    events: (limit) => events.all(limit).map(({ record }) => JSON.parse(record as string) as ConnectionRecord),
    list: (webhook, { limit, before = HIGHEST_ID }) => list.all(webhook, before, limit).map(deliveryOf),
    find(webhook, id) {
      const row = find.get(webhook, id)
      return row && deliveryOf(row)
    },
    due({ now, limit, perWebhook, busy, underWay }) {
      const rows = due.all(now, JSON.stringify(busy), JSON.stringify(underWay), perWebhook, limit)
      const nextAt = next.get(now)?.next as number | null | undefined
      return { due: rows.map(deliveryOf), nextAt: nextAt ?? undefined }
    },
  }
}

/** Text that sorts after every UUID. */
const HIGHEST_ID = 'g'

const deliveryOf = (row: Row): DeliveryRecord => ({
  id: row.id as string,
  webhook: row.webhook as string,
  event: row.event as string,
  type: row.type as string,
  session: row.session as string | null,
  sequence: row.sequence as number,
  at: row.at as number,
  manual: row.manual === 1,
  body: row.body as string,
  attempt: row.attempt as number,
  status: row.status as DeliveryRecord['status'],
  nextAt: row.next_at as number | null,
  requestedAt: row.requested_at as number | null,
  responseStatus: row.response_status as number | null,
  durationMs: row.ms as number | null,
  responseBody: row.response_body as string | null,
  error: row.error as string | null,
})
