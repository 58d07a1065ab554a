import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { CONFIG_RULES, TunnelConfig } from './tunnel-config.ts'

/** Reasons of a tunnel's `Ready` condition. */
export const TunnelReason = {
  /** It has its hostname, an endpoint and a certificate: whoever connects is served. */
  Assigned: 'Assigned',
  UnknownRegion: 'UnknownRegion',
  /** It has no hostname yet, and its namespace has as many tunnels as it may have: it waits until one of them goes. */
  QuotaExceeded: 'QuotaExceeded',
  /** No endpoint of its region takes new tunnels: none is active and has edges. */
  NoActiveEndpoint: 'NoActiveEndpoint',
  /** The endpoint it was given for life is gone. */
  EndpointMissing: 'EndpointMissing',
  DrawingHostname: 'DrawingHostname',
  ObtainingCertificate: 'ObtainingCertificate',
  /** It has no certificate, and its endpoint wants one of an issuer that this installation has not. */
  IssuerMissing: 'IssuerMissing',
  /** Its endpoint has no edges: nobody answers at its URL, which it keeps. */
  EndpointNotServed: 'EndpointNotServed',
  Deleting: 'Deleting',
} as const

/** The condition that a tunnel has while its valid certificate is obtained anew. */
export const RENEWING = 'Renewing'
/** Its reasons. */
export const RenewingReason = {
  /** Two thirds of the certificate's lifetime are over. */
  Due: 'Due',
  /** The last attempt failed; the certificate serves on, and another follows. */
  AttemptFailed: 'AttemptFailed',
} as const

/** The condition, always False, of a tunnel that was made with the annotation of a hostname and did not get that one. */
export const HOSTNAME_KEPT = 'HostnameKept'
/** Its reasons. */
export const HostnameKeptReason = {
  /** The annotation was made for another tunnel, by another installation, or by hand. */
  InvalidMark: 'InvalidMark',
  /** Another tunnel has it. */
  HostnameTaken: 'HostnameTaken',
} as const

/** The condition, always False, of a tunnel with `authorizedKeys` by which nobody can ever log in. */
export const KEYS_USABLE = 'KeysUsable'
/** Its reasons. */
export const KeysUsableReason = {
  /** Cut off, of another type than it says, or RSA of too few bits. */
  UnusableKey: 'UnusableKey',
} as const

/** Status of a certificate (contract, "Tunnel certificate"). */
export const CERTIFICATE_STATES = ['pending', 'obtaining', 'valid', 'expired', 'failed'] as const

/** 16 hexadecimal digits (contract, "Tunnel"). */
export const HOSTNAME = /^[0-9a-f]{16}$/

const time = (about: string) => z.string().max(32).optional().describe(`${about}, in UTC.`)

export const Certificate = z.object({
  status: z.enum(CERTIFICATE_STATES).describe('How far it has come.'),
  domain: z.string().max(253).optional().describe('Name that it covers.'),
  issuer: z.string().max(253).optional().describe('Who signed it.'),
  expiresAt: time('When it ends'),
  obtainedAt: time('When it was signed'),
  lastError: z.string().max(1024).optional().describe('Why the last attempt failed.'),
  nextAttemptAt: time('When the next attempt is made'),
})

/** Escapes that RE2 has too, and no class of Unicode's: the API server and clients read the pattern as well. */
export const DISPLAY_NAME = /^[^\x00-\x1f\x7f-\x9f]{1,63}$/u
export const DISPLAY_NAME_RULE = 'must be 1 to 63 printable characters'

export const TunnelSpec = z.object({
  regionId: z.int().min(1).max(2_147_483_647).describe('Number (`regionId`) of the Region that its endpoint is in.'),
  displayName: z
    .string()
    .regex(DISPLAY_NAME, DISPLAY_NAME_RULE)
    // For the API server, which counts characters: zod's own bound would count UTF-16's units.
    .meta({ maxLength: 63 })
    .optional()
    .describe('What its owner calls it; its object’s name, when absent.'),
  config: TunnelConfig.prefault({}).describe('Its settings; a change is in force at once.'),
  expiresAt: z.iso.datetime(UTC_RULE).max(32).optional().describe('When it deletes itself, in UTC.'),
})

/** A permanent public hostname for a port on somebody's machine. */
export const Tunnel = defineKind({
  kind: 'Tunnel',
  plural: 'tunnels',
  shortNames: ['tun'],
  namespaced: true,
  description: 'A permanent public hostname that an SSH client serves.',
  spec: TunnelSpec,
  status: z.object({
    ...commonStatus,
    hostname: z.string().max(16).optional().describe('Drawn once, for life: 16 hexadecimal digits.'),
    url: z.string().max(320).optional().describe('Its public URL.'),
    endpointRef: z
      .object({ name: z.string().max(253).describe('Its name.') })
      .optional()
      .describe('The TunnelEndpoint that serves it, for life.'),
    certificate: Certificate.optional().describe('Its TLS certificate.'),
    connected: z.boolean().optional().describe('Whether a client is connected.'),
    sessions: z.int().min(0).optional().describe('Clients that are connected.'),
    lastConnectedAt: time('When a client last connected'),
    updatedAt: time('When its spec last changed; absent for one that never did'),
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
