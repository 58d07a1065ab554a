import { ADDRESS_RULE } from './formats/address-list.ts'
import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'

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
  UnknownRegion: 'UnknownRegion',
  /** The installation does not have the certificate issuer that `spec.issuer` names. */
  IssuerMissing: 'IssuerMissing',
} as const

/** Host name or IP address, optionally with a zone (RFC 4007, section 11). No shell metacharacters: users paste it into commands. */
const HOST = /^[A-Za-z0-9:]([A-Za-z0-9._:%-]*[A-Za-z0-9:])?$/

const port = (value: number, about: string) => z.int().min(1).max(65_535).default(value).describe(about)

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
  issuer: z.enum(['local', 'acme']).default('local').describe('Issuer of the certificates.'),
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
    tunnels: z.int().min(0).optional().describe('Number of tunnels assigned to the endpoint.'),
    acmeThumbprint: z.string().max(64).optional().describe('Thumbprint of the ACME account key.'),
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

/** Whether new tunnels may be assigned to the endpoint. An assignment lasts for the tunnel's lifetime, so the endpoint must have edges. */
export const takesTunnels = ({ spec, status }: Pick<TunnelEndpoint, 'spec' | 'status'>): boolean =>
  spec.active && spec.replicas > 0 && !status?.conditions?.some(({ reason }) => reason === EndpointReason.IssuerMissing)
