import { z } from 'zod'
import { annotations } from '../../crds/names.ts'
import { type Certificate, CERTIFICATE_EVENTS, CERTIFICATE_STATES, type Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { createdAtOf, withMilliseconds } from '../resources/names-and-times.ts'
import { sshCommandOf } from './tunnel-commands.ts'
import { HeaderModification, TunnelConfig } from '../../crds/tunnel-config.ts'

const HeaderView = HeaderModification.extend({
  value: z
    .string()
    .nullable()
    .describe(
      'Value that replaces all existing ones; an empty value removes the header. Null for viewers, because it may be a secret, and for a value that is missing in its Secret.',
    ),
})

/** `config` of the REST API (docs/api.md, "Tunnels"); values of headers are null for viewers. */
export const TunnelConfigView = TunnelConfig.extend({
  liveHeaderModifications: z.array(HeaderView).describe('Headers to set or remove.'),
})
export type TunnelConfigView = z.output<typeof TunnelConfigView>

/**
 * Renders a config, in which values of headers that are known are literal. `readsSecrets`: whether the caller has the right to read secrets,
 * such as the values of headers. Pure.
 */
export function tunnelConfigView(config: TunnelConfig, readsSecrets: boolean): TunnelConfigView {
  const complete = config as z.output<typeof TunnelConfig>
  const liveHeaderModifications = complete.liveHeaderModifications.map(({ name, value = null, type }) => ({
    name,
    value: readsSecrets ? value : null,
    type,
  }))
  return { ...complete, liveHeaderModifications }
}

const time = z.iso.datetime().nullable()

/** `certificate` of the REST API (docs/api.md, "Tunnels"). */
export const CertificateView = z
  .object({
    status: z.enum(CERTIFICATE_STATES),
    domain: z.string().nullable(),
    issuer: z.string().nullable(),
    expiresAt: time,
    obtainedAt: time,
    lastError: z.string().nullable(),
    nextAttemptAt: time,
  })
  .meta({ id: 'Certificate' })
export type CertificateView = z.output<typeof CertificateView>

/** Event in the `history` of a certificate (docs/api.md, "Tunnels"). */
export const CertificateEventView = z
  .object({
    at: z.iso.datetime(),
    event: z.enum(CERTIFICATE_EVENTS),
    issuer: z.string().nullable(),
    expiresAt: time,
    error: z.string().nullable(),
    attempts: z.int().describe('Number of attempts in a row that failed by this error.'),
  })
  .meta({ id: 'CertificateEvent' })
export type CertificateEventView = z.output<typeof CertificateEventView>

/** `tunnel` of the REST API (docs/api.md, "Tunnels"). */
export const TunnelView = z
  .object({
    id: z.uuid(),
    name: z.string(),
    organization: z.string(),
    namespace: z.string(),
    regionId: z.int(),
    hostname: z.string().nullable().describe('16 hexadecimal digits, permanent; null until assigned.'),
    url: z.string().nullable().describe('Public URL.'),
    directUrl: z.string().nullable().describe('Public URL with the port of the edge.'),
    config: TunnelConfigView,
    endpoint: z
      .object({
        domain: z.string(),
        sshHost: z.string(),
        sshPort: z.int(),
        httpPort: z.int(),
        httpsPort: z.int(),
        hostKeys: z.array(z.string()).describe('Public host keys of the SSH server.'),
      })
      .nullable(),
    certificate: CertificateView,
    connected: z.boolean(),
    sessions: z.int(),
    lastConnectedAt: time,
    sshCommand: z
      .string()
      .nullable()
      .describe('Command for a POSIX shell; connects port 3000 of the local machine and pins the host key.'),
    expiresAt: time,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    createdBy: z.string().nullable(),
  })
  .meta({ id: 'Tunnel' })
export type TunnelView = z.output<typeof TunnelView>

/** Connected clients of a tunnel. */
export interface Presence {
  readonly sessions: number
  /** Time of the last connect, in milliseconds since the epoch. */
  readonly lastConnectedAt: number | undefined
}

/** Data of a view that the tunnel itself does not contain. */
export interface TunnelAbout {
  readonly organization: string
  /** Slug of the tunnel's namespace. */
  readonly namespace: string
  readonly endpoint: TunnelEndpoint | undefined
  readonly presence: Presence
  /** Whether the caller may read the values of headers. */
  readonly readsSecrets: boolean
}

const textOrNull = (text: string | undefined): string | null => text ?? null
const timeOrNull = (text: string | undefined): string | null => (text === undefined ? null : withMilliseconds(text))

const NO_CERTIFICATE: z.output<typeof Certificate> = { status: 'pending' }

export function certificateView({ status }: Tunnel): CertificateView {
  const { domain, issuer, expiresAt, obtainedAt, lastError, nextAttemptAt, status: state } = status?.certificate ?? NO_CERTIFICATE
  return {
    status: state,
    domain: textOrNull(domain),
    issuer: textOrNull(issuer),
    lastError: textOrNull(lastError),
    expiresAt: timeOrNull(expiresAt),
    obtainedAt: timeOrNull(obtainedAt),
    nextAttemptAt: timeOrNull(nextAttemptAt),
  }
}

/** Renders the last events of a tunnel's certificate, newest first. */
export function certificateHistoryView({ status }: Tunnel): readonly CertificateEventView[] {
  return (status?.certificate?.history ?? []).map(({ at, event, issuer, expiresAt, error, attempts = 1 }) => ({
    at: withMilliseconds(at),
    event,
    issuer: textOrNull(issuer),
    expiresAt: timeOrNull(expiresAt),
    error: textOrNull(error),
    attempts,
  }))
}

/** Renders a tunnel. Pure. */
export function tunnelView(
  tunnel: Tunnel,
  { organization, namespace, endpoint, presence, readsSecrets }: TunnelAbout,
): TunnelView {
  const { metadata, spec } = tunnel
  return {
    id: metadata.uid,
    name: spec.displayName ?? metadata.name,
    organization,
    namespace,
    regionId: spec.regionId,
    ...addressesOf(tunnel, endpoint),
    config: tunnelConfigView(spec.config, readsSecrets),
    certificate: certificateView(tunnel),
    connected: presence.sessions > 0,
    sessions: presence.sessions,
    lastConnectedAt: presence.lastConnectedAt === undefined ? null : new Date(presence.lastConnectedAt).toISOString(),
    expiresAt: timeOrNull(spec.expiresAt),
    ...timestampsOf(tunnel),
  }
}

function addressesOf({ spec, status }: Tunnel, endpoint: TunnelEndpoint | undefined) {
  const { hostname = null, url = null } = status ?? {}
  const withoutEndpoint = { hostname, url, directUrl: null, endpoint: null, sshCommand: null }
  if (!endpoint || hostname === null || url === null) return withoutEndpoint
  // The URL is permanent; the direct URL and the command are left out while they would not work.
  if (!isServed(endpoint)) return { ...withoutEndpoint, endpoint: endpointView(endpoint) }
  const sshCommand = sshCommandOf({ hostname, endpoint, config: spec.config })
  return { hostname, url, directUrl: `${url}${portOf(endpoint)}`, endpoint: endpointView(endpoint), sshCommand }
}

function timestampsOf({ metadata, status }: Tunnel) {
  const createdAt = createdAtOf(metadata)
  const { [annotations.updatedAt]: updatedAt, [annotations.createdBy]: createdBy } = metadata.annotations ?? {}
  // REST annotates its own changes; the operator reports others in the status.
  const times = [createdAt, updatedAt, status?.updatedAt].map((time) => Date.parse(time ?? ''))
  // The annotation can contain arbitrary text.
  const newest = Math.max(...times.filter(Number.isFinite))
  return { createdAt, updatedAt: new Date(newest).toISOString(), createdBy: textOrNull(createdBy) }
}

/** Whether an endpoint has edges. An endpoint without replicas does not serve its tunnels any more. */
export const isServed = ({ spec }: TunnelEndpoint): boolean => spec.replicas > 0

const portOf = ({ spec }: TunnelEndpoint): string => (spec.ports.https === 443 ? '' : `:${spec.ports.https}`)

function endpointView({ spec, status }: TunnelEndpoint): NonNullable<TunnelView['endpoint']> {
  const { domain, sshHost, ports } = spec
  const hostKeys = [...(status?.hostKeys ?? [])]
  return { domain, sshHost, sshPort: ports.ssh, httpPort: ports.http, httpsPort: ports.https, hostKeys }
}
