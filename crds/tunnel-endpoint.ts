import { ADDRESS_RULE } from './formats/address-list.ts'
import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource } from './kind.ts'

/**
 * Of an endpoint `x`, clients have the Service `edge-x` and its edges the Service `edge-x-mesh`, which would be that for clients of an
 * endpoint `x-mesh`: no endpoint's name ends so.
 */
export const MESH_SUFFIX = '-mesh'

/** Reasons of an endpoint's `Ready` condition. */
export const EndpointReason = {
  /** Edges answer. */
  Serving: 'Serving',
  /** No edge answers yet. */
  Starting: 'Starting',
  /** None answers, and they do not come up by themselves: an image that cannot be had, pods that end or may not be made. */
  EdgesFailing: 'EdgesFailing',
  UnknownRegion: 'UnknownRegion',
  /** Nobody in this installation signs the certificates that its tunnels are to have. */
  IssuerMissing: 'IssuerMissing',
} as const

/** A name, or an IP address, perhaps with a zone (RFC 4007, section 11): it stands in commands that people paste into a shell. */
const HOST = /^[A-Za-z0-9:]([A-Za-z0-9._:%-]*[A-Za-z0-9:])?$/

const port = (value: number, about: string) => z.int().min(1).max(65_535).default(value).describe(about)

export const TunnelEndpointSpec = z.object({
  region: z.uuid('must be the id (a UUID) of a Region').max(36).describe('Id of the Region.'),
  domain: z
    .string()
    .max(230)
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/, 'must be a domain name in lower case')
    .describe('Domain that hostnames are made under.'),
  sshHost: z.string().max(253).regex(HOST, 'must be a host name or an IP address').describe('Host that SSH clients connect to.'),
  ports: z
    .object({
      ssh: port(22_222, 'Port for SSH clients.'),
      http: port(28_080, 'Port for HTTP.'),
      https: port(28_443, 'Port for HTTPS.'),
    })
    .prefault({})
    .describe('Ports of the edges (contract, "Limits").'),
  publicHttpPort: port(80, 'Port that visitors use for HTTP.'),
  publicHttpsPort: port(443, 'Port that visitors use for HTTPS.'),
  active: z.boolean().default(true).describe('Whether new tunnels may be assigned to it.'),
  replicas: z
    .int()
    .min(0)
    .max(100)
    .default(2)
    .describe('Edges that serve it; 0: it is served no more, and takes no new tunnels.'),
  certificates: z.enum(['perTunnel', 'wildcard']).default('perTunnel').describe('One certificate a tunnel, or one for all.'),
  issuer: z.enum(['local', 'acme']).default('local').describe('Who signs the certificates.'),
  proxyProtocol: z
    .object({
      trustedCIDRs: z
        .array(z.string().max(64).describe('A CIDR range.'))
        .max(32)
        .default([])
        .describe('Balancers that are believed about who the visitor is.'),
    })
    .optional()
    .describe('Balancers before the edges.'),
})

/** Its edges are called after it, and what they consist of must be a label (RFC 1123) of at most 63 characters. */
export const ENDPOINT_NAME_MAX = 50
const NAME = `^[a-z0-9]([-a-z0-9]{0,${ENDPOINT_NAME_MAX - 2}}[a-z0-9])?$`

/** A domain under which tunnels get their hostnames, and where its edges are reached. */
export const TunnelEndpoint = defineKind({
  kind: 'TunnelEndpoint',
  plural: 'tunnelendpoints',
  shortNames: ['tep'],
  namespaced: false,
  description: 'A domain for tunnels, and the edges that serve it.',
  spec: TunnelEndpointSpec,
  status: z.object({
    ...commonStatus,
    readyReplicas: z.int().min(0).optional().describe('Edges that answer.'),
    tunnels: z.int().min(0).optional().describe('Tunnels assigned to it.'),
    acmeThumbprint: z.string().max(64).optional().describe('Thumbprint of the ACME account key.'),
    hostKeys: z.array(z.string().max(1024)).max(8).optional().describe('Public host keys, as OpenSSH writes them.'),
    strangersCertificate: z
      .object({
        notBefore: z.string().max(32).describe('When it begins to be valid: another one when it was issued anew.'),
        notAfter: z.string().max(32).describe('When it ends.'),
      })
      .optional()
      .describe('Certificate that visitors are shown who ask for a hostname that no tunnel has.'),
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
      message: `must not end in ${MESH_SUFFIX}: so ends the name of the Service by which the edges of an endpoint find each other`,
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

/** Whether it may be given new tunnels. They are there for life: one that nobody serves would leave them without an answer. */
export const takesTunnels = ({ spec, status }: Pick<TunnelEndpoint, 'spec' | 'status'>): boolean =>
  spec.active && spec.replicas > 0 && !status?.conditions?.some(({ reason }) => reason === EndpointReason.IssuerMissing)
