import { randomUUIDv7 } from 'node:crypto'
import { slugsOf } from '../../crds/names.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelWebhook, WebhookEvent } from '../../crds/tunnel-webhook.ts'
import type { ConnectionRecord } from '../../journal/port.ts'
import type { NewDelivery, WebhookOutbox } from '../../journal/webhooks.ts'
import { webhookState } from '../../shared/active-webhooks.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { messageBody } from '../../shared/webhook-message.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, keyToString } from '../../store/port.ts'
import { stepDone } from '../reporter.ts'

/** Maximum number of events in one transaction. */
const BATCH = 500
/** Tolerated difference between the clocks of an edge and of the store, in milliseconds. */
const CLOCKS_MS = 60_000

export interface DispatchDeps {
  readonly outbox: Pick<WebhookOutbox, 'events' | 'dispatch'>
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'byUid'>
  /** Webhooks, with the indexes of indexes.ts. */
  readonly webhooks: Pick<Cache<typeof TunnelWebhook>, 'byIndex'>
  readonly guard: AddressGuard
  readonly now: () => Date
}

/**
 * Creates the function that makes deliveries of recorded events, for the webhooks that are active now and older than the event. It returns whether
 * there may be more events.
 */
export function createDispatch({ outbox, tunnels, webhooks, guard, now }: DispatchDeps): () => Promise<boolean> {
  function deliveriesOf(record: ConnectionRecord): readonly NewDelivery[] {
    const tunnel = tunnels.byUid(record.tunnel)
    if (!tunnel) return []
    const named = webhooks.byIndex('tunnel', keyToString(keyOf(tunnel)))
    const type: WebhookEvent = record.type === 'connect' ? 'tunnel.connected' : 'tunnel.disconnected'
    const receivers = named.filter(
      (webhook) =>
        webhook.spec.events.includes(type) &&
        record.at >= Date.parse(webhook.metadata.creationTimestamp) - CLOCKS_MS &&
        webhookState({ webhook, tunnel, named, guard }).isActive,
    )
    if (receivers.length === 0) return []
    const body = bodyOf(record, { type, tunnel })
    return receivers.map(({ metadata }) => ({
      id: randomUUIDv7(),
      webhook: metadata.uid,
      event: record.id,
      type,
      body,
      session: record.sessionId,
      sequence: sequenceOf(record),
      at: now().getTime(),
      manual: false,
    }))
  }

  return async function dispatch() {
    const events = await outbox.events(BATCH)
    if (events.length === 0) return false
    stepDone('webhook.seen', events[0]?.id ?? '')
    await outbox.dispatch(
      events.map(({ id }) => id),
      events.flatMap(deliveriesOf),
    )
    stepDone('webhook.dispatched', events[0]?.id ?? '')
    return events.length === BATCH
  }
}

const sequenceOf = ({ type }: ConnectionRecord): number => (type === 'connect' ? 1 : 2)

function bodyOf(record: ConnectionRecord, { type, tunnel }: { readonly type: WebhookEvent; readonly tunnel: Tunnel }): string {
  const { id, at } = record
  return messageBody({
    id,
    at,
    type,
    tunnel,
    ...slugsOf(tunnel.metadata.namespace),
    session: record,
    sequence: sequenceOf(record),
  })
}
