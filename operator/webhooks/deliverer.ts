import type { Registry } from 'prom-client'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { DeliveryRecord, WebhookOutbox } from '../../journal/webhooks.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { type Clock, pause, systemClock } from '../../shared/timers.ts'
import type { WebhookSecrets } from '../../shared/webhook-secrets.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { createAttempt } from './attempt.ts'
import { createDispatch } from './dispatch.ts'
import { createWebhookMetrics } from './metrics.ts'
import { createResolver, type Resolve } from './resolve.ts'
import { createSend } from './send.ts'
import { createDeliverySlots, SLOTS } from './slots.ts'

export interface DelivererDeps {
  readonly store: Pick<Store, 'patchStatus'>
  readonly outbox: WebhookOutbox
  readonly tunnels: Cache<typeof Tunnel>
  /** Webhooks, with the indexes of indexes.ts. */
  readonly webhooks: Cache<typeof TunnelWebhook>
  readonly guard: AddressGuard
  readonly secrets: WebhookSecrets
  readonly registry: Registry
  readonly log: { warn(details: object, message: string): void; info(details: object, message: string): void }
  readonly now: () => Date
  /** Whether this process is leader now; called before each attempt. Default: always. */
  readonly mayAct?: (() => boolean) | undefined
  readonly clock?: Clock
  readonly resolve?: Resolve
  readonly random?: () => number
  /** Maximum time of an attempt in milliseconds. Default: 10 s. */
  readonly timeoutMs?: number
  /** Maximum numbers of attempts under way; default: {@link SLOTS}. */
  readonly limits?: typeof SLOTS
}

/** Maximum wait for work in milliseconds. The journal notifies, but a lost connection may lose a notification. */
const POLL_MS = 5_000
/** Wait after a failure, such as that of the journal, in milliseconds. */
const FAILED_MS = 1_000

/**
 * Creates the loop that dispatches events to webhooks and delivers them. All state is in the journal: after a crash an interrupted attempt is
 * repeated, with the same event id.
 */
export function createDeliverer(deps: DelivererDeps): { run(signal: AbortSignal): Promise<void> } {
  const { outbox, tunnels, webhooks, log, now } = deps
  const { clock = systemClock, random = Math.random, mayAct = () => true, resolve = createResolver(), limits = SLOTS } = deps
  const slots = createDeliverySlots((namespace) => webhooks.list({ namespace }).map(({ metadata }) => metadata.uid), limits)
  const metrics = createWebhookMetrics(deps.registry, () => slots.underWay().length)
  const send = createSend({ ...deps, resolve })
  const dispatch = createDispatch(deps)
  const attempt = createAttempt({ ...deps, clock, random, mayAct, send, metrics })
  const running = new Set<Promise<void>>()
  let wake = new AbortController()
  let isFailing = false

  function failed(error: unknown): void {
    if (!isFailing) log.warn({ err: error }, 'webhooks cannot be delivered; retrying')
    isFailing = true
  }

  /** Starts an attempt. @returns whether there was a slot for it */
  function start(delivery: DeliveryRecord, signal: AbortSignal): boolean {
    const namespace = webhooks.byUid(delivery.webhook)?.metadata.namespace ?? ''
    const release = slots.take({ id: delivery.id, webhook: delivery.webhook, namespace })
    if (!release) return false
    const work = attempt(delivery, signal)
      .catch(async (error: unknown) => {
        failed(error)
        // The slot of the delivery stays taken meanwhile, so that the delivery is not repeated at once.
        await pause(clock, FAILED_MS, signal)
        return undefined
      })
      .then((durationMs) => {
        release(durationMs)
        running.delete(work)
        wake.abort()
      })
    running.add(work)
    return true
  }

  /** Dispatches events and starts due deliveries. Returns the wait in milliseconds for the next round, which new work may end earlier. */
  async function round(signal: AbortSignal): Promise<number> {
    if (!mayAct()) return POLL_MS
    const isMore = await dispatch()
    const free = slots.free()
    if (free <= 0) return POLL_MS
    const at = now().getTime()
    const query = { now: at, limit: free, perWebhook: limits.perWebhook, busy: slots.busy(), underWay: slots.underWay() }
    const { due, nextAt } = await outbox.due(query)
    const started = due.filter((delivery) => start(delivery, signal)).length
    if (isFailing) log.info({}, 'webhooks are delivered again')
    isFailing = false
    // Deliveries without a free slot may have hidden those of other webhooks. The next query leaves out webhooks without a slot.
    const isCut = started > 0 && (started < due.length || due.length === free)
    return isMore || isCut ? 0 : Math.min(POLL_MS, Math.max(0, (nextAt ?? Infinity) - at))
  }

  async function run(signal: AbortSignal): Promise<void> {
    await Promise.race([Promise.all([tunnels.synced(), webhooks.synced()]), pause(clock, Infinity, signal)])
    const stop = outbox.onWork(() => wake.abort())
    while (!signal.aborted) {
      wake = new AbortController()
      const waitMs = await round(signal).catch((error: unknown) => {
        failed(error)
        return FAILED_MS
      })
      await pause(clock, waitMs, AbortSignal.any([signal, wake.signal]))
    }
    stop()
    await Promise.all(running)
  }

  return { run }
}
