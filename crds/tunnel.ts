import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { CONFIG_RULES, TunnelConfig } from './tunnel-config.ts'

/** Reasons of a tunnel's `Ready` condition. */
export const TunnelReason = {
  /** The tunnel has a hostname, an endpoint and a certificate: clients and visitors can connect. */
  Assigned: 'Assigned',
  UnknownRegion: 'UnknownRegion',
  /** The namespace has reached its quota of tunnels. The tunnel gets a hostname when another tunnel is deleted. */
  QuotaExceeded: 'QuotaExceeded',
  /** No endpoint of the region accepts new tunnels: it must be active and have edges. */
  NoActiveEndpoint: 'NoActiveEndpoint',
  /** The assigned endpoint was deleted. The assignment cannot change. */
  EndpointMissing: 'EndpointMissing',
  /** The Namespace is not a tenant's: it lacks the labels that the message names. The tunnel is not served, and keeps its hostname. */
  NoAccess: 'NoAccess',
  DrawingHostname: 'DrawingHostname',
  ObtainingCertificate: 'ObtainingCertificate',
  /** The tunnel has no certificate, and its endpoint does not accept the terms of the certificate authority. */
  IssuerMissing: 'IssuerMissing',
  /** The endpoint has no edges, so the URL does not respond. The tunnel keeps its URL. */
  EndpointNotServed: 'EndpointNotServed',
  /** The tunnel is deleted, and the certificate authority could not be asked yet to revoke its certificate. */
  RevokingCertificate: 'RevokingCertificate',
  /** The tunnel is deleted, and its certificate is not revoked: the certificate authority has rejected that, or did not answer in time. */
  CertificateNotRevoked: 'CertificateNotRevoked',
  Deleting: 'Deleting',
} as const

/** Type of the condition of a tunnel whose certificate is valid and being renewed. */
export const RENEWING = 'Renewing'
/** Reasons of `Renewing`. */
export const RenewingReason = {
  /** Two thirds of the certificate's lifetime have passed. */
  Due: 'Due',
  /** The last attempt failed. The certificate stays in use, and another attempt follows. */
  AttemptFailed: 'AttemptFailed',
} as const

/** Type of the condition, always False, of a tunnel that was created with a hostname annotation and got another hostname. */
export const HOSTNAME_KEPT = 'HostnameKept'
/** Reasons of `HostnameKept`. */
export const HostnameKeptReason = {
  /** The MAC of the annotation is invalid: it is from another tunnel or installation, or was edited. */
  InvalidMark: 'InvalidMark',
  /** Another tunnel has the hostname. */
  HostnameTaken: 'HostnameTaken',
} as const

/** Type of the condition, always False, of a tunnel with invalid entries in `authorizedKeys`. */
export const KEYS_USABLE = 'KeysUsable'
/** Reasons of `KeysUsable`. */
export const KeysUsableReason = {
  /** A key is incomplete, not of the type that it names, or RSA with fewer than 2048 bits. */
  UnusableKey: 'UnusableKey',
} as const

/** Type of the condition, always False, of a tunnel whose allow lists have entries that match no address, stored before they were rejected. */
export const ADDRESSES_USABLE = 'AddressesUsable'
/** Reasons of `AddressesUsable`. */
export const AddressesUsableReason = {
  /** A range has address bits after its prefix. It may have been meant as one address or as a network, so it admits nothing. */
  UnusableRange: 'UnusableRange',
} as const

/** Type of the condition, always False, of a tunnel with header values that are missing or cannot be sent. Such headers are removed. */
export const HEADERS_USABLE = 'HeadersUsable'
/** Reasons of `HeadersUsable`. */
export const HeadersUsableReason = {
  /** There is no Secret of this name in the namespace of the tunnel. */
  SecretMissing: 'SecretMissing',
  /** The Secret does not have the key. */
  KeyMissing: 'KeyMissing',
  /** The value has more than 1,024 characters, several lines, blanks at its ends, or characters that a header cannot have. */
  InvalidValue: 'InvalidValue',
  /** The namespace is not one of a tenant: Mooring reads no Secrets there. */
  SecretForbidden: 'SecretForbidden',
} as const

/** States of a tunnel's certificate. */
export const CERTIFICATE_STATES = ['pending', 'obtaining', 'valid', 'expired', 'failed'] as const

/** Hostname of a tunnel: 16 hexadecimal digits. */
export const HOSTNAME = /^[0-9a-f]{16}$/

const time = (about: string) => z.string().max(32).optional().describe(`${about}, in UTC.`)

/** What happened to a certificate. */
export const CERTIFICATE_EVENTS = ['obtained', 'failed', 'expired'] as const

const CertificateEvent = z.object({
  at: z.string().max(32).describe('Time of the event, in UTC.'),
  event: z
    .enum(CERTIFICATE_EVENTS)
    .describe('What happened: a certificate was obtained, an attempt failed, or the certificate expired.'),
  issuer: z.string().max(253).optional().describe('Name of the issuer.'),
  expiresAt: time('End of the validity of the certificate that was obtained'),
  error: z.string().max(1024).optional().describe('Error of the attempt.'),
  attempts: z.int().min(1).optional().describe('Number of attempts in a row that failed by this error; absent for one.'),
})
export type CertificateEvent = z.output<typeof CertificateEvent>

export const Certificate = z.object({
  status: z.enum(CERTIFICATE_STATES).describe('State of the certificate.'),
  domain: z.string().max(253).optional().describe('Domain name that the certificate covers.'),
  issuer: z.string().max(253).optional().describe('Name of the issuer.'),
  expiresAt: time('End of the certificate’s validity'),
  obtainedAt: time('Time of issue'),
  lastError: z.string().max(1024).optional().describe('Error of the last attempt.'),
  nextAttemptAt: time('Time of the next attempt'),
  acme: z
    .object({
      directory: z.string().max(1024).optional().describe('Directory of the certificate authority.'),
      id: z.string().max(256).optional().describe('Identifier of the certificate (RFC 9773, section 4.1).'),
      token: z.string().max(256).optional().describe('Token of the challenge that the edges answer (RFC 8555, section 8.3).'),
    })
    .optional()
    .describe('State of a certificate that is obtained by ACME.'),
  history: z.array(CertificateEvent).max(10).optional().describe('Last events of the certificate, newest first.'),
})

/** Display name: printable characters. The pattern uses only escapes that RE2 supports, because API servers evaluate it too. */
export const DISPLAY_NAME = /^[^\x00-\x1f\x7f-\x9f]{1,63}$/u
export const DISPLAY_NAME_RULE = 'must be 1 to 63 printable characters'

export const TunnelSpec = z.object({
  regionId: z.int().min(1).max(2_147_483_647).describe('Number (`regionId`) of the Region that the tunnel’s endpoint is in.'),
  displayName: z
    .string()
    .regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
    // For the API server, which counts characters. zod's own bound would count UTF-16 code units.
    .meta({ maxLength: 63 })
    .optional()
    .describe('Display name, chosen by the owner. Default: the name of the object.'),
  config: TunnelConfig.prefault({}).describe('Settings of the tunnel; a change takes effect at once.'),
  expiresAt: z.iso.datetime(UTC_RULE).max(32).optional().describe('Time at which the tunnel is deleted, in UTC.'),
})

/** Permanent public hostname for a server that an SSH client makes reachable. */
export const Tunnel = defineKind({
  kind: 'Tunnel',
  plural: 'tunnels',
  shortNames: ['tun'],
  namespaced: true,
  description: 'Permanent public hostname for a server that an SSH client makes reachable.',
  spec: TunnelSpec,
  status: z.object({
    ...commonStatus,
    hostname: z.string().max(16).optional().describe('Hostname label: 16 random hexadecimal digits that never change.'),
    url: z.string().max(320).optional().describe('Public URL of the tunnel.'),
    endpointRef: z
      .object({ name: z.string().max(253).describe('Name of the TunnelEndpoint.') })
      .optional()
      .describe('TunnelEndpoint that serves the tunnel; never changes.'),
    certificate: Certificate.optional().describe('TLS certificate of the tunnel.'),
    headerValues: z
      .object({
        observedGeneration: z.int().describe('Generation of the spec whose references were read.'),
        version: z.string().max(128).describe('Version of the values that the edges read; says nothing about the values.'),
      })
      .optional()
      .describe('State of the header values that come from Secrets.'),
    connected: z.boolean().optional().describe('Whether a client is connected.'),
    sessions: z.int().min(0).optional().describe('Number of connected clients.'),
    lastConnectedAt: time('Time of the last connection of a client'),
    updatedAt: z.string().max(32).optional().describe('Time of the last change of the spec, in UTC; absent if it never changed.'),
  }),
  immutable: ['spec.regionId'],
  rules: CONFIG_RULES,
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.status.hostname' },
    { name: 'Region', type: 'integer', jsonPath: '.spec.regionId' },
    { name: 'Certificate', type: 'string', jsonPath: '.status.certificate.status' },
    { name: 'Connected', type: 'boolean', jsonPath: '.status.connected' },
    ...READY_COLUMNS,
    { name: 'URL', type: 'string', jsonPath: '.status.url', priority: 1 },
    AGE_COLUMN,
  ],
})
export type Tunnel = Resource<typeof Tunnel>
export type TunnelCertificate = NonNullable<NonNullable<Tunnel['status']>['certificate']>
