import { z } from 'zod'

/** Directory of Let's Encrypt, the default of `issuer: acme`. */
export const LETS_ENCRYPT = 'https://acme-v02.api.letsencrypt.org/directory'

/** Directory of Let's Encrypt for trials, whose certificates no browser trusts. */
const STAGING = 'https://acme-staging-v02.api.letsencrypt.org/directory'
/** Directories by the words that settings accept for them. */
export const DIRECTORIES: ReadonlyMap<string, string> = new Map([
  ['letsencrypt', LETS_ENCRYPT],
  ['staging', STAGING],
])

/** URL of an ACME directory: https, without user, query and fragment. */
export const DIRECTORY_URL = /^https:\/\/[A-Za-z0-9.:[\]-]{1,255}(\/[A-Za-z0-9._~\/%-]*)?$/
export const EMAIL = /^[^\s@,?&:;<>"]{1,64}@[A-Za-z0-9.-]{1,189}$/
/** IP address, optionally with a port: `9.9.9.9`, `127.0.0.1:8053`, `[::1]:53`. */
export const NAMESERVER = /^([0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]{1,5})?|[0-9a-fA-F:]{2,45}|\[[0-9a-fA-F:]{2,45}\](:[0-9]{1,5})?)$/
/** Name of an object in Kubernetes. */
export const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
/** Name of a profile of the CA, or id of a key: printable ASCII without spaces. */
export const ACME_TOKEN = /^[!-~]{1,253}$/

/** Challenges with which a CA verifies the control of a name (RFC 8555, section 8). */
export const ACME_CHALLENGES = ['http-01', 'tls-alpn-01', 'dns-01', 'dns-persist-01'] as const

/** Algorithms of the keys of DNS updates (RFC 8945, section 6). */
export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512'] as const
/** Host name or IP address of a DNS server, optionally with a port; IPv6 addresses are in brackets. */
export const DNS_SERVER = /^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:.]{2,45}\])(:[0-9]{1,5})?$/
/** Name of a zone or of a TSIG key, in DNS syntax. */
export const DNS_NAME = /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?$/

const DnsSettings = z.object({
  server: z
    .string()
    .max(262)
    .regex(DNS_SERVER, 'must be a host name or an IP address, optionally with a port')
    .describe('Primary DNS server of the zone. Default port: 53.'),
  zone: z
    .string()
    .max(254)
    .regex(DNS_NAME, 'must be a domain name')
    .optional()
    .describe('Zone of the record. Default: the server is asked.'),
  tsigKeyName: z.string().max(254).regex(DNS_NAME, 'must be a domain name').describe('Name of the key.'),
  tsigAlgorithm: z.enum(TSIG_ALGORITHMS).default('hmac-sha256').describe('Algorithm of the key.'),
  tsigSecretName: z
    .string()
    .max(253)
    .regex(OBJECT_NAME, 'must be the name of an object')
    .describe('Secret in mooring-system whose entry `tsig-key` is the key in base64.'),
})

/** Settings of `issuer: acme` of a TunnelEndpoint. */
export const AcmeSettingsSchema = z.object({
  directoryUrl: z
    .string()
    .max(1024)
    .regex(DIRECTORY_URL, 'must be an https URL without user, query and fragment')
    .default(LETS_ENCRYPT)
    .describe('Directory of the certificate authority (RFC 8555, section 7.1.1). Default: Let’s Encrypt.'),
  agreeToTerms: z.boolean().default(false).describe('Whether the terms of service of the certificate authority are accepted.'),
  email: z
    .string()
    .max(254)
    .regex(EMAIL, 'must be an e-mail address')
    .optional()
    .describe('Address for messages of the certificate authority.'),
  caBundle: z
    .string()
    .max(262_144)
    .regex(/^\s*-----BEGIN CERTIFICATE-----/, 'must be certificates in PEM')
    .optional()
    .describe('Roots in PEM that the TLS certificate of the directory is verified with, beside the public ones.'),
  profile: z
    .string()
    .max(253)
    .regex(ACME_TOKEN, 'must be the name of a profile')
    .optional()
    .describe('Profile of the certificates, from those that the directory lists.'),
  externalAccount: z
    .object({
      keyId: z.string().max(253).regex(ACME_TOKEN, 'must be printable and without blanks').describe('Id of the key.'),
      secretName: z
        .string()
        .max(253)
        .regex(OBJECT_NAME, 'must be the name of an object')
        .describe('Secret in mooring-system whose entry `hmac-key` is the key in base64url.'),
    })
    .optional()
    .describe('Account at the certificate authority that the ACME account is bound to (RFC 8555, section 7.3.4).'),
  accountKeyVersion: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1)
    .describe(
      'Version of the key of the ACME account. Add 1 for a new key. Of endpoints with the same account the highest counts.',
    ),
  challenge: z
    .enum(ACME_CHALLENGES)
    .default('http-01')
    .describe(
      'How the certificate authority verifies a name. http-01: it fetches a file from port 80. tls-alpn-01: it opens a TLS connection to port 443. dns-01: it reads a TXT record of each order. dns-persist-01: it reads a TXT record that stays, see `status.acmeRecord`.',
    ),
  dns: DnsSettings.optional().describe(
    'Challenge dns-01: where TXT records are written, by dynamic updates (RFC 2136) that are signed with a TSIG key (RFC 8945).',
  ),
  revokeOnDelete: z
    .boolean()
    .default(false)
    .describe('Whether the certificate of a tunnel is revoked when the tunnel is deleted. Not for wildcard certificates.'),
  nameservers: z
    .array(z.string().max(64).regex(NAMESERVER, 'must be an IP address, optionally with a port').describe('A DNS server.'))
    .max(8)
    .default([])
    .describe('DNS servers of the check that precedes an order. Default: those of the operator.'),
  check: z
    .boolean()
    .default(true)
    .describe('Whether the operator fetches the challenge itself before it asks the certificate authority to.'),
  weeklyBudget: z
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe(
      'First certificates of tunnels that are ordered within 7 days per registered domain. Default: 40 at Let’s Encrypt, 100,000 at other certificate authorities.',
    ),
})
