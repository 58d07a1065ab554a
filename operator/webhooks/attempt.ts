import type { Tunnel } from '../../crds/tunnel.ts'
import { type DisabledReason, TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import type { DeliveryRecord, DeliveryAttempt, FailureStreak, WebhookOutbox } from '../../journal/webhooks.ts'
import { tunnelOfWebhook, webhookState } from '../../shared/active-webhooks.ts'
import type { AddressGuard } from '../../shared/outside-addresses.ts'
import { backoffMs, type Clock, pause } from '../../shared/timers.ts'
import type { WebhookSecrets } from '../../shared/webhook-secrets.ts'
import type { Cache } from '../../store/cache.ts'
import { isStoreError, keyOf, keyToString, type Store } from '../../store/port.ts'
import { stepDone } from '../reporter.ts'
import type { WebhookMetrics } from './metrics.ts'
import { planNext, whyDisable } from './plan.ts'
import type { Send } from './send.ts'
import { messageHeaders } from './signatures.ts'

export interface AttemptDeps {
  readonly store: Pick<Store, 'patchStatus'>
  readonly outbox: Pick<WebhookOutbox, 'finish' | 'abandon'>
  readonly tunnels: Pick<Cache<typeof Tunnel>, 'get'>
  /** Webhooks, with the indexes of indexes.ts. */
  readonly webhooks: Pick<Cache<typeof TunnelWebhook>, 'byUid' | 'byIndex'>
  readonly guard: AddressGuard
  readonly secrets: WebhookSecrets
  readonly send: Send
  readonly metrics: WebhookMetrics
  readonly now: () => Date
  readonly clock: Clock
  readonly random: () => number
  /** Whether this process is leader now. */
  readonly mayAct: () => boolean
  readonly log: { warn(details: object, message: string): void }
}

/** Age of a delivery in milliseconds up to which its webhook may be missing because the cache is behind. */
const YOUNG_MS = 30_000
const AGAIN_MS = 1_000
const BACK_OFF = { baseMs: 250, maxMs: 5_000 }

/**
 * Creates the function that makes one attempt of a delivery. It resolves when the journal has the result, or when the signal aborts: with the
 * duration of the request in milliseconds, or with undefined when there was none.
 */
export function createAttempt(deps: AttemptDeps): (delivery: DeliveryRecord, signal: AbortSignal) => Promise<number | undefined> {
  const { store, outbox, tunnels, webhooks, guard, secrets, send, metrics, now, clock, random, mayAct, log } = deps

  /** Repeats a write to the journal until it succeeds or the signal aborts. Without its result a delivery would be sent again. */
  async function kept<T>(write: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    for (let failures = 1; ; failures++) {
      try {
        return await write()
      } catch (error) {
        if (failures === 1) log.warn({ err: error }, 'the result of a webhook delivery could not be kept; retrying')
        await pause(clock, backoffMs(BACK_OFF, failures, random), signal)
        if (signal.aborted) return undefined
      }
    }
  }

  /** Handles a delivery whose webhook is not in the cache, because it was deleted or is too new. */
  async function withoutWebhook(delivery: DeliveryRecord): Promise<void> {
    const at = now().getTime()
    if (at - delivery.at > YOUNG_MS) {
      await outbox.abandon(delivery.webhook, 'the webhook was deleted', { manual: true })
      return
    }
    await outbox.finish({ ...delivery, nextAt: at + AGAIN_MS, at, counts: false })
  }

  async function disable(webhook: TunnelWebhook, disabledReason: DisabledReason): Promise<void> {
    const { uid, generation } = webhook.metadata
    try {
      await store.patchStatus(TunnelWebhook, keyOf(webhook), { disabledReason, disabledGeneration: generation }, { uid })
    } catch (error) {
      if (!isStoreError(error, 'not_found') && !isStoreError(error, 'conflict')) throw error
    }
  }

  async function deliver(delivery: DeliveryRecord, webhook: TunnelWebhook, signal: AbortSignal): Promise<number | undefined> {
    const requestedAt = now().getTime()
    const { event, body } = delivery
    const headers = messageHeaders(secrets, { webhook, event, body, at: requestedAt })
    const sent = await send({ url: webhook.spec.url, headers, body }, signal)
    stepDone('webhook.sent', delivery.id)
    // The end of this process has aborted the request. The next process delivers the event.
    if (signal.aborted && sent.status === null) return undefined
    const at = now().getTime()
    const next = planNext({ delivery, response: sent, at, random })
    const result: DeliveryAttempt = {
      id: delivery.id,
      ...next,
      requestedAt,
      responseStatus: sent.status,
      durationMs: sent.durationMs,
      responseBody: sent.body,
      at,
      counts: !delivery.manual,
    }
    const streak = await kept<FailureStreak | undefined>(() => outbox.finish(result), signal)
    metrics.attempted(next.status, sent.durationMs)
    stepDone('webhook.finished', delivery.id)
    const reason = whyDisable(sent, streak, at)
    if (reason !== undefined) await disable(webhook, reason)
    return sent.durationMs
  }

  return async function attempt(delivery, signal) {
    const webhook = webhooks.byUid(delivery.webhook)
    if (!webhook) {
      await withoutWebhook(delivery)
      return undefined
    }
    const key = tunnelOfWebhook(webhook)
    const named = webhooks.byIndex('tunnel', keyToString(key))
    const state = webhookState({ webhook, tunnel: tunnels.get(key), named, guard })
    if (!state.isActive && !delivery.manual) {
      await outbox.abandon(delivery.webhook, `the webhook is not active: ${state.message}`, { manual: false })
    } else if (mayAct()) {
      return deliver(delivery, webhook, signal)
    }
    return undefined
  }
}
