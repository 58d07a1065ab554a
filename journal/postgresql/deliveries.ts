import type { ConnectionRecord } from '../port.ts'
import { connectionOf, type EventRow, numberOf } from '../search.ts'
import {
  type DeliveryRecord,
  type NewDelivery,
  type WebhookOutbox,
  KEPT_MAX,
  PENDING_MAX,
  TOO_MANY_PENDING,
} from '../webhooks.ts'
import { isUuid, jsonArray, startOf } from './record-format.ts'
import type { Ask } from './pool.ts'

/**
 * Tables of the outbox (journal/webhooks.ts), which layout 6 adds. A row of `tunnel_events` stays after its dispatch, so that its key rejects a second
 * event of the same session and type. `next_at` is null unless the delivery is pending. `sequence` orders the deliveries of a session.
 */
export const WEBHOOK_TABLES = `
  CREATE TABLE IF NOT EXISTS tunnel_events (
    session text NOT NULL, type text NOT NULL, id uuid NOT NULL, record json NOT NULL, dispatched boolean NOT NULL DEFAULT false,
    PRIMARY KEY (session, type)
  );
  CREATE INDEX IF NOT EXISTS tunnel_events_waiting ON tunnel_events (id) WHERE NOT dispatched;
  CREATE TABLE IF NOT EXISTS deliveries (
    id uuid PRIMARY KEY, webhook uuid NOT NULL, event text NOT NULL, type text NOT NULL, session text, sequence integer NOT NULL,
    at bigint NOT NULL, manual boolean NOT NULL, body text NOT NULL, attempt integer NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'pending', next_at bigint, requested_at bigint, response_status integer, ms double precision,
    response_body text, error text
  );
  CREATE INDEX IF NOT EXISTS deliveries_by_webhook ON deliveries (webhook, id);
  CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (next_at) WHERE next_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deliveries_pending ON deliveries (webhook, session, sequence) WHERE next_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS failure_streaks (webhook uuid PRIMARY KEY, failures integer NOT NULL, since bigint NOT NULL);
`

/** Channel that is notified of new events and deliveries, without a payload. */
export const WEBHOOK_CHANNEL = 'journal_webhooks'

const DELIVERY_COLUMNS = `id uuid, webhook uuid, event text, type text, session text, sequence integer, at bigint, manual boolean, body text`
const INSERT_DELIVERIES = `
  INSERT INTO journal.deliveries (id, webhook, event, type, session, sequence, at, manual, body, next_at)
  SELECT id, webhook, event, type, session, sequence, at, manual, body, at FROM given`

/** Returns the SQL that removes deliveries beyond {@link KEPT_MAX}, unless they are pending. `webhooks` is an SQL array of uids. */
const prune = (webhooks: string): string => `
  DELETE FROM journal.deliveries AS d USING (
    SELECT w, (SELECT id FROM journal.deliveries AS e WHERE e.webhook = w ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_MAX}) AS oldest
    FROM unnest(${webhooks}) AS w
  ) AS bound WHERE d.webhook = bound.w AND d.next_at IS NULL AND d.id <= bound.oldest`

/** Returns the SQL that fails the oldest pending deliveries beyond {@link PENDING_MAX}. `webhooks` is an SQL array of uids. */
const bound = (webhooks: string): string => `
  UPDATE journal.deliveries SET status = 'failed', next_at = NULL, error = '${TOO_MANY_PENDING}'
  WHERE id IN (
    SELECT id FROM (
      SELECT id, row_number() OVER (PARTITION BY webhook ORDER BY id DESC) AS place FROM journal.deliveries
      WHERE webhook = ANY (${webhooks}) AND next_at IS NOT NULL
    ) AS pending WHERE place > ${PENDING_MAX}
  )`

const OF_DELIVERY = "ARRAY[(delivery ->> 'webhook')::uuid]"

/** Body of the function `add_delivery`. API servers add tests and redeliveries with it; it ignores any other delivery. */
export const ADD_DELIVERY = `
  WITH given AS (SELECT * FROM json_to_record(delivery) AS g(${DELIVERY_COLUMNS}) WHERE manual AND session IS NULL)
  ${INSERT_DELIVERIES} ON CONFLICT DO NOTHING;
  ${prune(OF_DELIVERY)};
  ${bound(OF_DELIVERY)};
  PERFORM pg_notify('${WEBHOOK_CHANNEL}', '');
  refused := 0;`

const DISPATCH = `
  WITH taken AS (UPDATE journal.tunnel_events SET dispatched = true WHERE id = ANY ($1::uuid[]) AND NOT dispatched RETURNING id),
  given AS (SELECT * FROM json_to_recordset($2::json) AS g(${DELIVERY_COLUMNS}) WHERE event IN (SELECT id::text FROM taken))
  ${INSERT_DELIVERIES} ON CONFLICT DO NOTHING`

const DUE = `
  SELECT * FROM (
    SELECT d.*, row_number() OVER (PARTITION BY webhook ORDER BY next_at, id) AS place FROM journal.deliveries AS d
    WHERE next_at <= $1 AND webhook <> ALL ($2::uuid[]) AND id <> ALL ($3::uuid[])
      AND (session IS NULL OR NOT EXISTS (
        SELECT FROM journal.deliveries AS e
        WHERE e.webhook = d.webhook AND e.session = d.session AND e.sequence < d.sequence
          AND e.attempt = 0 AND e.next_at IS NOT NULL
      ))
  ) AS ready WHERE place <= $4 ORDER BY next_at, id LIMIT $5`

const FINISH = `
  WITH done AS (
    UPDATE journal.deliveries SET attempt = $2, status = $3, next_at = $4, requested_at = $5, response_status = $6, ms = $7,
      response_body = $8, error = $9
    WHERE id = $1 AND next_at IS NOT NULL RETURNING webhook
  ), cleared AS (
    DELETE FROM journal.failure_streaks WHERE $11 AND $3 = 'delivered' AND webhook IN (SELECT webhook FROM done)
  )
  INSERT INTO journal.failure_streaks AS s (webhook, failures, since)
  SELECT webhook, 1, $10 FROM done WHERE $11 AND $3 <> 'delivered'
  ON CONFLICT (webhook) DO UPDATE SET failures = s.failures + 1 RETURNING failures, since`

const EVENTS = `
  SELECT o.* FROM journal.tunnel_events, json_to_record(record) AS o(id uuid, tunnel uuid, at bigint, type text, edge text, ip text,
    method text, session text, fingerprint text, password text, reason text, ms double precision)
  WHERE NOT dispatched ORDER BY o.id LIMIT $1`

/** Creates the outbox without `onWork`. Only the owner of the schema may call functions that are not part of {@link DeliveryLog}. */
export function createDeliveries(ask: Ask): Omit<WebhookOutbox, 'onWork'> {
  return {
    async events(limit): Promise<readonly ConnectionRecord[]> {
      return (await ask(EVENTS, [limit])).map(connectionOf)
    },
    async list(webhook, { limit, before }) {
      const sql = `SELECT * FROM journal.deliveries WHERE webhook = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
      return (await ask(sql, [webhook, startOf(before), limit])).map(deliveryOf)
    },
    async find(webhook, id) {
      if (!isUuid(id)) return undefined
      const [row] = await ask('SELECT * FROM journal.deliveries WHERE webhook = $1 AND id = $2', [webhook, id])
      return row && deliveryOf(row)
    },
    async add(delivery) {
      await ask('SELECT journal.add_delivery($1::json)', [JSON.stringify(delivery)])
    },
    async dispatch(events, deliveries) {
      await ask(DISPATCH, [events, jsonArray(deliveries.map((delivery) => JSON.stringify(delivery)))])
      const webhooks = [...new Set(deliveries.map(({ webhook }: NewDelivery) => webhook))]
      if (webhooks.length === 0) return
      await ask(prune('$1::uuid[]'), [webhooks])
      await ask(bound('$1::uuid[]'), [webhooks])
    },
    async due({ now, limit, perWebhook, busy, underWay }) {
      const rows = await ask(DUE, [now, busy, underWay, perWebhook, limit])
      const [next] = await ask('SELECT min(next_at) AS next FROM journal.deliveries WHERE next_at > $1', [now])
      return { due: rows.map(deliveryOf), nextAt: numberOrNull(next?.next) ?? undefined }
    },
    async finish({ id, attempt, status, nextAt, requestedAt, responseStatus, durationMs, responseBody, error, at, counts }) {
      const values = [id, attempt, status, nextAt, requestedAt, responseStatus, durationMs, responseBody, error, at, counts]
      const [row] = await ask(FINISH, values)
      return row && { failures: numberOf(row.failures), since: numberOf(row.since) }
    },
    async abandon(webhook, error, { manual }) {
      const sql = `UPDATE journal.deliveries SET status = 'failed', next_at = NULL, error = $2
        WHERE webhook = $1 AND next_at IS NOT NULL AND ($3 OR NOT manual)`
      await ask(sql, [webhook, error, manual])
    },
    async forgive(webhook) {
      await ask('DELETE FROM journal.failure_streaks WHERE webhook = $1', [webhook])
    },
  }
}

const numberOrNull = (value: unknown): number | null => (value === null || value === undefined ? null : numberOf(value))

const deliveryOf = (row: EventRow): DeliveryRecord => ({
  id: row.id as string,
  webhook: row.webhook as string,
  event: row.event as string,
  type: row.type as string,
  session: row.session as string | null,
  sequence: numberOf(row.sequence),
  at: numberOf(row.at),
  manual: row.manual === true,
  body: row.body as string,
  attempt: numberOf(row.attempt),
  status: row.status as DeliveryRecord['status'],
  nextAt: numberOrNull(row.next_at),
  requestedAt: numberOrNull(row.requested_at),
  responseStatus: numberOrNull(row.response_status),
  durationMs: numberOrNull(row.ms),
  responseBody: row.response_body as string | null,
  error: row.error as string | null,
})
