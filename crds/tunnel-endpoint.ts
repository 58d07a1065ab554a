import { elderOf, elders } from './elders.ts'
import { ADDRESS_RULE } from './formats/address-list.ts'
import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'
import { AcmeSettingsSchema, OBJECT_NAME } from './parts/acme-settings.ts'

/**
 * Suffix of the Service by which the edges of an endpoint find each other. Endpoint `x` has the Services `edge-x` (for clients) and
 * `edge-x-mesh` (for its edges). An endpoint `x-mesh` would use the second name for its clients, so this suffix is not allowed.
 */
export const MESH_SUFFIX = '-mesh'

/** Reasons of an endpoint's `Ready` condition. */
export const EndpointReason = {
  /** At least one edge responds. */
  Serving: 'Serving',
  /** No edge responds yet. */
  Starting: 'Starting',
  /** No edge responds, and a restart does not help: the image is not available, or pods exit or cannot be created. */
  EdgesFailing: 'EdgesFailing',
  /** The Service of type LoadBalancer has no address yet, so no client or visitor outside the cluster reaches the edges. */
  AddressPending: 'AddressPending',
  UnknownRegion: 'UnknownRegion',
  /** An older endpoint has the same domain: this one gets no edges and no tunnels. */
  DomainTaken: 'DomainTaken',
  /** `spec.issuer` is `acme`, but `spec.acme` does not accept the terms of the certificate authority. */
  IssuerMissing: 'IssuerMissing',
  /** The Secret of `spec.tlsSecretName` has no usable certificate, and none of an earlier time is valid. */
  CertificateUnusable: 'CertificateUnusable',
  /** Challenge dns-persist-01: DNS does not have the record that the message names. */
  DnsRecordMissing: 'DnsRecordMissing',
  /** Challenge dns-persist-01: the record is not known, because there is no account at the certificate authority yet. */
  AccountMissing: 'AccountMissing',
} as const

/** Type of the condition that is present while the certificate of `spec.tlsSecretName` is about to expire. */
export const CERTIFICATE_EXPIRING = 'CertificateExpiring'

/** Host name or IP address, optionally with a zone (RFC 4007, section 11). No shell metacharacters: users paste it into commands. */
const HOST = /^[A-Za-z0-9:]([A-Za-z0-9._:%-]*[A-Za-z0-9:])?$/

const port = (value: number, about: string) => z.int().min(1).max(65_535).default(value).describe(about)

/** Challenges that prove the control of all names of a domain. */
const WILDCARD_CHALLENGES: readonly string[] = ['dns-01', 'dns-persist-01']

export const TunnelEndpointSpec = z.object({
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region.'),
  domain: z
    .string()
    .max(230)
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/, 'must be a domain name in lower case')
    .describe('Parent domain of the hostnames of tunnels.'),
  sshHost: z.string().max(253).regex(HOST, 'must be a host name or an IP address').describe('Host that SSH clients connect to.'),
  ports: z
    .object({
      ssh: port(22_222, 'Port for SSH clients.'),
      http: port(28_080, 'Port for HTTP.'),
      https: port(28_443, 'Port for HTTPS.'),
    })
    .prefault({})
    .describe('Ports of the edges.'),
  publicHttpPort: port(80, 'Port that visitors use for HTTP.'),
  publicHttpsPort: port(443, 'Port that visitors use for HTTPS.'),
  active: z.boolean().default(true).describe('Whether new tunnels may be assigned to the endpoint.'),
  replicas: z.int().min(0).max(100).default(2).describe('Number of edges. With 0 no edge runs and no new tunnel is assigned.'),
  certificates: z
    .enum(['perTunnel', 'wildcard'])
    .default('perTunnel')
    .describe('One certificate per tunnel, or one wildcard certificate for all.'),
  issuer: z
    .enum(['local', 'acme'])
    .default('local')
    .describe('Issuer of the certificates: the CA of the installation, or a public one by ACME (`acme`).'),
  acme: AcmeSettingsSchema.optional().describe('Settings of `issuer: acme`.'),
  tlsSecretName: z
    .string()
    .max(253)
    .regex(OBJECT_NAME, 'must be the name of an object')
    .optional()
    .describe(
      'Secret of type kubernetes.io/tls in mooring-system with a certificate for `*.{domain}`, used in place of one from the issuer.',
    ),
  proxyProtocol: z
    .object({
      trustedCIDRs: z
        .array(z.string().max(64).describe('A CIDR range.'))
        .max(32)
        .default([])
        .describe('Addresses of the load balancers. The edges trust these to report the address of the visitor.'),
    })
    .optional()
    .describe('Load balancers that send the PROXY protocol to the edges.'),
})

/** Maximum length of an endpoint's name. Names of its Services and pods contain it and must be RFC 1123 labels of at most 63 characters. */
export const ENDPOINT_NAME_MAX = 50
const NAME = `^[a-z0-9]([-a-z0-9]{0,${ENDPOINT_NAME_MAX - 2}}[a-z0-9])?$`

/** Domain for hostnames of tunnels, with the edges that serve it. */
export const TunnelEndpoint = defineKind({
  kind: 'TunnelEndpoint',
  plural: 'tunnelendpoints',
  shortNames: ['tep'],
  namespaced: false,
  description: 'Domain for tunnels, with the edges that serve it.',
  spec: TunnelEndpointSpec,
  status: z.object({
    ...commonStatus,
    readyReplicas: z.int().min(0).optional().describe('Number of edges that respond.'),
    tunnels: z.int().min(0).optional().describe('Number of tunnels assigned to the endpoint, some seconds old.'),
    databases: z
      .int()
      .min(0)
      .optional()
      .describe('Number of dedicated databases with an SSH tunnel at the endpoint, some seconds old.'),
    acmeThumbprint: z.string().max(64).optional().describe('Thumbprint of the ACME account key.'),
    certificate: z
      .object({
        status: z.enum(['valid', 'expired', 'failed']).describe('State of the certificate.'),
        issuer: z.string().max(253).optional().describe('Name of the issuer.'),
        obtainedAt: z.string().max(32).optional().describe('Time at which the certificate was taken over, in UTC.'),
        expiresAt: z.string().max(32).optional().describe('End of the certificate’s validity, in UTC.'),
        lastError: z.string().max(1024).optional().describe('Reason why the content of the Secret is not used.'),
      })
      .optional()
      .describe('Certificate of `spec.tlsSecretName`.'),
    acmeRecord: z
      .object({
        name: z.string().max(253).describe('Name of the record.'),
        value: z.string().max(1024).describe('Value of the record.'),
      })
      .optional()
      .describe('Challenge dns-persist-01: TXT record that permits the certificate authority to issue certificates.'),
    acmeAccountKeyVersion: z.int().optional().describe('Version of the key of the ACME account.'),
    hostKeys: z.array(z.string().max(1024)).max(8).optional().describe('Public host keys in OpenSSH format.'),
    strangersCertificate: z
      .object({
        notBefore: z.string().max(32).describe('Start of the certificate’s validity; changes when the certificate is renewed.'),
        notAfter: z.string().max(32).describe('End of the certificate’s validity.'),
      })
      .optional()
      .describe('Certificate for connections to unknown hosts: hostnames that no tunnel has.'),
  }),
  immutable: ['spec.region', 'spec.domain'],
  rules: [
    {
      cel: `self.metadata.name.matches('${NAME}')`,
      message: `must be at most ${ENDPOINT_NAME_MAX} lower-case letters, digits and hyphens, a letter or digit first and last`,
      field: 'metadata.name',
      holds: (_spec: unknown, { name }: { readonly name: string }) => new RegExp(NAME).test(name),
    },
    {
      cel: `!self.metadata.name.endsWith('${MESH_SUFFIX}')`,
      message: `must not end in ${MESH_SUFFIX}: the suffix is reserved for the Service by which the edges of an endpoint find each other`,
      field: 'metadata.name',
      holds: (_spec: unknown, { name }: { readonly name: string }) => !name.endsWith(MESH_SUFFIX),
    },
    {
      cel: `!has(self.proxyProtocol) || self.proxyProtocol.trustedCIDRs.all(item, ${ADDRESS_RULE.cel})`,
      message: ADDRESS_RULE.ofList,
      field: 'spec.proxyProtocol.trustedCIDRs',
      holds: (spec: z.output<typeof TunnelEndpointSpec>) => (spec.proxyProtocol?.trustedCIDRs ?? []).every(ADDRESS_RULE.holds),
    },
    {
      cel: "self.issuer != 'acme' || (self.certificates == 'wildcard' ? has(self.acme) && self.acme.challenge in ['dns-01', 'dns-persist-01'] : !has(self.acme) || self.acme.challenge != 'dns-01')",
      message:
        'with issuer acme, certificates wildcard needs the challenge dns-01 or dns-persist-01, and perTunnel needs http-01, tls-alpn-01 or dns-persist-01',
      field: 'spec.certificates',
      holds: ({ issuer, certificates, acme }: z.output<typeof TunnelEndpointSpec>) =>
        issuer !== 'acme' ||
        (certificates === 'wildcard' ? WILDCARD_CHALLENGES.includes(acme?.challenge ?? '') : acme?.challenge !== 'dns-01'),
    },
    {
      cel: "!has(self.tlsSecretName) || (self.certificates == 'wildcard' && self.issuer == 'local')",
      message: 'needs certificates wildcard and issuer local',
      field: 'spec.tlsSecretName',
      holds: ({ tlsSecretName, certificates, issuer }: z.output<typeof TunnelEndpointSpec>) =>
        tlsSecretName === undefined || (certificates === 'wildcard' && issuer === 'local'),
    },
    {
      cel: "!has(self.acme) || self.acme.challenge != 'dns-01' || has(self.acme.dns)",
      message: 'is required by the challenge dns-01',
      field: 'spec.acme.dns',
      holds: ({ acme }: z.output<typeof TunnelEndpointSpec>) => acme?.challenge !== 'dns-01' || acme.dns !== undefined,
    },
  ],
  columns: [
    { name: 'Domain', type: 'string', jsonPath: '.spec.domain' },
    { name: 'SSH', type: 'string', jsonPath: '.spec.sshHost' },
    { name: 'Active', type: 'boolean', jsonPath: '.spec.active' },
    { name: 'Edges', type: 'integer', jsonPath: '.status.readyReplicas' },
    { name: 'Tunnels', type: 'integer', jsonPath: '.status.tunnels' },
    ...READY_COLUMNS,
    AGE_COLUMN,
  ],
})
export type TunnelEndpoint = Resource<typeof TunnelEndpoint>
export type AcmeSettings = NonNullable<TunnelEndpoint['spec']['acme']>

const haveOneDomain = (a: TunnelEndpoint, b: TunnelEndpoint): boolean => a.spec.domain === b.spec.domain

/** Returns the endpoints that are in force: those without an older one of the same domain. Pure. */
export const endpointsInForce = (endpoints: readonly TunnelEndpoint[]): readonly TunnelEndpoint[] =>
  elders(endpoints, haveOneDomain)

/** Returns the older endpoint that has the domain of an endpoint; undefined when the endpoint is in force. Pure. */
export const endpointBefore = (endpoint: TunnelEndpoint, endpoints: readonly TunnelEndpoint[]): TunnelEndpoint | undefined =>
  elderOf(endpoint, endpoints, haveOneDomain)

/** Whether new tunnels may be assigned to the endpoint. They stay assigned for their lifetime, so it must have edges and an issuer. */
export const takesTunnels = ({ spec, status }: Pick<TunnelEndpoint, 'spec' | 'status'>): boolean =>
  spec.active && spec.replicas > 0 && !status?.conditions?.some(({ reason }) => reason === EndpointReason.IssuerMissing)
