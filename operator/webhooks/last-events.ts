import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { JournalReader } from '../../journal/port.ts'
import type { WebhookOutbox } from '../../journal/webhooks.ts'
import { webhooksOf, webhookState } from '../../shared/active-webhooks.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { sleep } from '../../shared/timers.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, keyToString } from '../../store/port.ts'

export interface LastEventsDeps {
  readonly outbox: Pick<WebhookOutbox, 'events' | 'list'>
  readonly journal: Pick<JournalReader, 'presence'>
  /** Webhooks, with the indexes of indexes.ts. */
  readonly webhooks: Pick<Cache<typeof TunnelWebhook>, 'byIndex'>
  readonly guard: AddressGuard
  readonly now: () => Date
}

/** Maximum time for which last events hold up the deletion of a tunnel, in milliseconds: that of one attempt. */
const HOLD_MS = 10_000
const AGAIN_MS = 200
/** Maximum time of one check, in milliseconds. */
const READ_MS = 2_000
/** Undispatched events that are read. If there are more, those of the tunnel may be among them. */
const EVENTS_MAX = 500
/** Newest deliveries of a webhook that are read: more than a tunnel has sessions. */
const DELIVERIES_MAX = 50

/**
 * Creates the check of a deleted tunnel for events that its webhooks have yet to receive: the edges end its sessions, whose disconnects are delivered while
 * the tunnel and its webhooks still exist. It returns the time in milliseconds until the next check; undefined when each event had its first
 * attempt, and 10 s after the deletion.
 */
export function createLastEvents(deps: LastEventsDeps): (tunnel: Tunnel) => Promise<number | undefined> {
  const { outbox, journal, webhooks, guard, now } = deps

  /** Follows an event from its session through the outbox to the attempt: one that moves on meanwhile is found at a later place. */
  async function areLeft(uid: string, receivers: readonly string[]): Promise<boolean> {
    const presence = await journal.presence([uid])
    if ((presence.get(uid)?.sessions ?? 0) > 0) return true
    const events = await outbox.events(EVENTS_MAX)
    if (events.length === EVENTS_MAX || events.some(({ tunnel }) => tunnel === uid)) return true
    const lists = await Promise.all(receivers.map((webhook) => outbox.list(webhook, { limit: DELIVERIES_MAX })))
    return lists.flat().some(({ status, attempt, manual }) => status === 'pending' && attempt === 0 && !manual)
  }

  /** The same; true while the journal is unavailable or slow. */
  async function mayBeLeft(uid: string, receivers: readonly string[]): Promise<boolean> {
    const over = new AbortController()
    const late = sleep(READ_MS, over.signal).then(() => true)
    const left = areLeft(uid, receivers).catch(() => true)
    return Promise.race([left, late]).finally(() => over.abort())
  }

  return async function lastEvents(tunnel) {
    const { uid, deletionTimestamp } = tunnel.metadata
    if (deletionTimestamp === undefined || now().getTime() - Date.parse(deletionTimestamp) > HOLD_MS) return undefined
    const named = webhooks.byIndex('tunnel', keyToString(keyOf(tunnel)))
    const active = webhooksOf(tunnel, named).filter((webhook) => webhookState({ webhook, tunnel, named, guard }).isActive)
    if (active.length === 0) return undefined
    const receivers = active.map(({ metadata }) => metadata.uid)
    return (await mayBeLeft(uid, receivers)) ? AGAIN_MS : undefined
  }
}
