import { MESH_SUFFIX } from '../crds/tunnel-endpoint.ts'

/**
 * Names, ports and paths that the operator and the edges share: objects in `mooring-system` that the operator creates for the edges of an
 * endpoint. The two components do not import each other.
 */

/** Ports that an edge listens on. The ports of its Service may differ. */
export const EDGE_PORTS = { ssh: 22_222, http: 28_080, https: 28_443, mesh: 28_444, metrics: 9_464 } as const

/** Mount paths of an edge's Secrets (`/etc`), and the directory for data that outlives a restart of the process (`data`). */
export const EDGE_PATHS = {
  hostKeys: '/etc/mooring/host-keys',
  mesh: '/etc/mooring/mesh',
  journal: '/etc/mooring/journal',
  data: '/var/lib/mooring',
} as const

/** Types of an endpoint's host keys, which are also their keys in the Secret. The Secret has the public key of a type under `{type}.pub`. */
export const HOST_KEY_TYPES = ['ed25519', 'ecdsa', 'rsa'] as const

/** Name of an endpoint's Deployment, Service, ServiceAccount and Role. */
export const edgeName = (endpoint: string): string => `edge-${endpoint}`
/** Name of an endpoint's headless Service, by which the edges find each other. */
export const meshName = (endpoint: string): string => `${edgeName(endpoint)}${MESH_SUFFIX}`

/**
 * Name of the Secret with the host keys of a domain, at most 249 characters. It outlives the domain's endpoints. Names of endpoints have no
 * dot, so that no other Secret has such a name.
 */
export const hostKeysSecret = (domain: string): string => `endpoint-host-keys.${domain}`
/** Name of the Secret in which an earlier version kept an endpoint's host keys. Kubernetes deletes it with the endpoint. */
export const formerHostKeysSecret = (endpoint: string): string => `endpoint-${endpoint}-host-keys`
/** Name of the Secret with the certificate for connections between the edges of an endpoint. */
export const meshSecret = (endpoint: string): string => `endpoint-${endpoint}-mesh`
/** Name of the Secret with the wildcard certificate of an endpoint. */
export const sharedCertificate = (endpoint: string): string => `endpoint-${endpoint}-certificate`
/** Name of the Secret with an endpoint's certificate for unknown hosts. */
export const unknownHostsSecret = (endpoint: string): string => `endpoint-${endpoint}-strangers`
/** Name of the Secret with a tunnel's own certificate. */
export const ownCertificate = (hostname: string): string => `tunnel-${hostname}-certificate`
/** Name of the Secret with the header values of a tunnel, copied from Secrets of its namespace. */
export const headerValuesSecret = (hostname: string): string => `tunnel-${hostname}-headers`
