import { MESH_SUFFIX } from '../crds/tunnel-endpoint.ts'
/**
 * What the operator makes for the edges of an endpoint and these find again: names in `mooring-system`, ports and files. Neither component
 * imports the other, so what both must spell alike stands here.
 */

/** What an edge listens on, whatever its Service's ports are. */
export const EDGE_PORTS = { ssh: 22_222, http: 28_080, https: 28_443, mesh: 28_444, metrics: 9_464 } as const

/** Where an edge's Secrets are mounted, and what outlives a restart of its process. */
export const EDGE_PATHS = {
  hostKeys: '/etc/mooring/host-keys',
  mesh: '/etc/mooring/mesh',
  journal: '/etc/mooring/journal',
  data: '/var/lib/mooring',
} as const

/** Host keys of an endpoint, and their entries in its Secret; the entry of a public key ends in `.pub`. */
export const HOST_KEY_TYPES = ['ed25519', 'ecdsa', 'rsa'] as const

/** Name of an endpoint's Deployment, Service, ServiceAccount, Role, and whatever else there is one of. */
export const edgeName = (endpoint: string): string => `edge-${endpoint}`
/** Its Service without an address: by it the edges find each other. */
export const meshName = (endpoint: string): string => `${edgeName(endpoint)}${MESH_SUFFIX}`

/** Its Secret with the host keys. */
export const hostKeysSecret = (endpoint: string): string => `endpoint-${endpoint}-host-keys`
/** Its Secret with the certificate that its edges show each other. */
export const meshSecret = (endpoint: string): string => `endpoint-${endpoint}-mesh`
/** Its Secret with the certificate of all its tunnels, where that is one. */
export const sharedCertificate = (endpoint: string): string => `endpoint-${endpoint}-certificate`
/** Its Secret with the certificate for visitors of hostnames that no tunnel has. */
export const unknownHostsSecret = (endpoint: string): string => `endpoint-${endpoint}-strangers`
/** The Secret with a tunnel's own certificate. */
export const ownCertificate = (hostname: string): string => `tunnel-${hostname}-certificate`
