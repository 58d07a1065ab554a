import type { Tunnel } from '../crds/tunnel.ts'
import type { WebhookEvent } from '../crds/tunnel-webhook.ts'

/** Type of the event that a person sends to try a webhook. */
export const TEST_EVENT = 'tunnel.test'

/** Session that an event is about. */
export interface EventSession {
  readonly clientIp: string
  readonly authMethod: 'key' | 'token' | null
  readonly sessionId: string
  readonly keyFingerprint: string | null
  readonly reason: string | null
  readonly durationMs: number | null
}

/** Event of a tunnel, as receivers get it (docs/webhooks.md, "Body"). */
export interface TunnelMessage {
  /** Id of the event; equal for all attempts and webhooks. */
  readonly id: string
  readonly type: WebhookEvent | typeof TEST_EVENT
  /** Time of the event in milliseconds since the epoch. */
  readonly at: number
  readonly tunnel: Tunnel
  readonly organization: string
  readonly namespace: string
  /** Undefined for a test. */
  readonly session?: EventSession | undefined
  /** Place within the session: 1 for the connect, 2 for the disconnect, 0 for a test. */
  readonly sequence: number
}

const NO_SESSION = { clientIp: null, authMethod: null, sessionId: null, keyFingerprint: null, reason: null, durationMs: null }

/** Returns the request body of an event. Pure. */
export function messageBody({ id, type, at, tunnel, organization, namespace, session, sequence }: TunnelMessage): string {
  const { metadata, spec, status } = tunnel
  const about = {
    id: metadata.uid,
    name: spec.displayName ?? metadata.name,
    hostname: status?.hostname ?? null,
    url: status?.url ?? null,
    organization,
    namespace,
  }
  const ofSession = session && {
    clientIp: session.clientIp,
    authMethod: session.authMethod,
    sessionId: session.sessionId,
    keyFingerprint: session.keyFingerprint,
    reason: session.reason,
    durationMs: session.durationMs,
  }
  const data = { tunnel: about, ...(ofSession ?? NO_SESSION), sequence }
  return JSON.stringify({ id, type, timestamp: new Date(at).toISOString(), data })
}
