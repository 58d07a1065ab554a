import { z } from 'zod'
import { WEBHOOK_PORT_RULE, WEBHOOK_URL, WEBHOOK_URL_MAX, WEBHOOK_URL_RULE } from './formats/webhook-url.ts'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, type Rule } from './kind.ts'

/** Events that a webhook can subscribe to. */
export const WEBHOOK_EVENTS = ['tunnel.connected', 'tunnel.disconnected'] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/** Reasons of a webhook's `Ready` condition. */
export const WebhookReason = {
  /** Events of the tunnel are delivered. */
  Active: 'Active',
  /** `spec.enabled` is false. */
  Disabled: 'Disabled',
  /** The receiver answered 410 Gone, so the operator has disabled the webhook. */
  ReceiverGone: 'ReceiverGone',
  /** Too many attempts in a row failed, so the operator has disabled the webhook. */
  TooManyFailures: 'TooManyFailures',
  /** There is no such tunnel, or the webhook is for a former tunnel of the same name. */
  TunnelMissing: 'TunnelMissing',
  /** The tunnel has the maximum number of older webhooks. */
  TooManyWebhooks: 'TooManyWebhooks',
  /** The URL has an address or a port that webhooks must not use, such as a private address. */
  AddressRefused: 'AddressRefused',
  /** A Secret of another owner has the name of the webhook's Secret. Events are delivered nevertheless. */
  SecretNameTaken: 'SecretNameTaken',
} as const

/** Reasons of `status.disabledReason`. */
export const DISABLED_REASONS = ['receiver_gone', 'too_many_failures'] as const
export type DisabledReason = (typeof DISABLED_REASONS)[number]

export const TunnelWebhookSpec = z.object({
  tunnelRef: z
    .object({ name: z.string().min(1).max(253).describe('Name of the Tunnel.') })
    .describe('Tunnel whose events are delivered, in the same namespace.'),
  url: z
    .string()
    .max(WEBHOOK_URL_MAX)
    .regex(WEBHOOK_URL, WEBHOOK_URL_RULE)
    .describe('URL that receives the events by POST; http or https, port 80, 443, or 1024 and above.'),
  events: z
    .array(z.enum(WEBHOOK_EVENTS))
    .min(1)
    .max(WEBHOOK_EVENTS.length)
    .default([...WEBHOOK_EVENTS])
    .describe('Events to deliver.'),
  enabled: z
    .boolean()
    .default(true)
    .describe('Whether events are delivered. Events of a disabled webhook are not delivered later.'),
  secretVersion: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1)
    .describe('Version of the signing secret. Add 1 for a new secret; for a day, deliveries are signed by both.'),
})

const URL_RULE: Rule = {
  cel: WEBHOOK_PORT_RULE.cel,
  message: `url ${WEBHOOK_PORT_RULE.message}`,
  field: 'spec.url',
  holds: ({ url }: z.output<typeof TunnelWebhookSpec>) => WEBHOOK_PORT_RULE.holds(url),
}

/** URL that is notified of a tunnel's connects and disconnects. */
export const TunnelWebhook = defineKind({
  kind: 'TunnelWebhook',
  plural: 'tunnelwebhooks',
  shortNames: ['twh'],
  namespaced: true,
  description: 'URL that is notified when clients connect to a tunnel and disconnect.',
  spec: TunnelWebhookSpec,
  status: z.object({
    ...commonStatus,
    disabledReason: z.enum(DISABLED_REASONS).optional().describe('Reason why the operator disabled the webhook.'),
    disabledGeneration: z.int().optional().describe('Generation of the spec that the operator disabled.'),
    secretVersion: z.int().optional().describe('Version of the signing secret in use.'),
    previousSecretVersion: z.int().optional().describe('Version of the former secret, which still signs.'),
    previousSecretUntil: z.string().max(32).optional().describe('Time until which the former secret signs, in UTC.'),
    secretRef: z
      .object({ name: z.string().max(253).describe('Name of the Secret.') })
      .optional()
      .describe('Secret with the signing secret, of a webhook that was not created by the REST API.'),
  }),
  immutable: ['spec.tunnelRef'],
  rules: [URL_RULE],
  columns: [
    { name: 'Tunnel', type: 'string', jsonPath: '.spec.tunnelRef.name' },
    { name: 'Enabled', type: 'boolean', jsonPath: '.spec.enabled' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type TunnelWebhook = Resource<typeof TunnelWebhook>
