import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { DeliveryRecord } from '../../journal/webhooks.ts'

export interface WebhookMetrics {
  /** Counts a finished attempt. `status` is that of the delivery afterwards: `pending` means that another attempt follows. */
  readonly attempted: (status: DeliveryRecord['status'], durationMs: number) => void
}

const RESULTS = { pending: 'retried', delivered: 'delivered', failed: 'failed' } as const

/** Registers the metrics of webhooks. `underWay` returns the number of attempts under way. */
export function createWebhookMetrics(registry: Registry, underWay: () => number): WebhookMetrics {
  const registers = [registry]
  const attempts = new Counter({
    name: 'mooring_webhook_attempts_total',
    help: 'Attempts to deliver an event to a webhook, by result: delivered, retried later, failed for good.',
    labelNames: ['result'],
    registers,
  })
  const seconds = new Histogram({
    name: 'mooring_webhook_attempt_seconds',
    help: 'Duration of attempts to deliver an event to a webhook.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10],
    registers,
  })
  new Gauge({
    name: 'mooring_webhook_attempts_under_way',
    help: 'Attempts to deliver an event to a webhook that are under way.',
    registers,
    collect() {
      this.set(underWay())
    },
  })
  return {
    attempted(status, durationMs) {
      attempts.inc({ result: RESULTS[status] })
      seconds.observe(durationMs / 1_000)
    },
  }
}
