import type { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { Condition } from '../../crds/kind.ts'
import { SSH_TUNNEL_READY, type SshTunnelStatus, SshTunnelReason } from '../../crds/parts/ssh-tunnel.ts'
import { brokenItems, KEY_RULE } from '../../crds/tunnel-config.ts'
import { endpointsInForce, type TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { Cache } from '../../store/cache.ts'
import { type Decision, notReady, ready, withCondition, withoutCondition } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { StatusFields } from '../reporter.ts'
import { drawHostname, type HostnameOwners } from '../tunnel/hostnames.ts'
import { candidatesOf } from '../tunnel/resources.ts'

/** Caches that exist in an installation with edges only. */
export interface SshTunnelDeps {
  readonly endpoints: Cache<typeof TunnelEndpoint>
  /** Tunnels, with the indexes `hostname` and `endpoint`. */
  readonly tunnels: HostnameOwners['tunnels']
}

/**
 * Returns the endpoint of a database's SSH tunnel: the assigned one while it exists, otherwise the one of the region that accepts new
 * tunnels and has the fewest. Returns undefined without `spec.sshTunnel`, and without such an endpoint.
 */
export function sshEndpointOf(
  { spec, status }: Pick<DedicatedDatabase, 'spec' | 'status'>,
  edges: SshTunnelDeps | undefined,
): TunnelEndpoint | undefined {
  if (!spec.sshTunnel || !edges) return undefined
  const { endpoints, tunnels } = edges
  const assigned = status?.sshTunnel && endpoints.get({ name: status.sshTunnel.endpointRef.name })
  if (assigned) return assigned
  return candidatesOf(endpointsInForce(endpoints.list()), spec.region, (name) => tunnels.countByIndex('endpoint', name))[0]
}

/** State on which the decisions about a database's SSH tunnel depend. */
interface Observed {
  readonly database: DedicatedDatabase
  /** Endpoint of the SSH tunnel; undefined without `spec.sshTunnel`, and without an endpoint in the region. */
  readonly endpoint: TunnelEndpoint | undefined
}

/** Whether the status names the endpoint, so that its edges may use the hostname. True without an endpoint. */
export const isHostnameAssigned = ({ database, endpoint }: Observed): boolean =>
  endpoint === undefined || database.status?.sshTunnel?.endpointRef.name === endpoint.metadata.name

/**
 * Writes hostname and endpoint into the status before anything uses them. A database whose endpoint was deleted keeps its hostname.
 * @returns the database after the write
 */
export function assignHostname(
  store: Store,
  { database, endpoint }: Observed,
  owners: HostnameOwners,
): Promise<DedicatedDatabase> | DedicatedDatabase {
  if (!endpoint) return database
  const { uid, resourceVersion } = database.metadata
  const hostname = database.status?.sshTunnel?.hostname ?? drawHostname(owners)
  const sshTunnel = { hostname, endpointRef: { name: endpoint.metadata.name } }
  return store.patchStatus(DedicatedDatabase, database.metadata, { sshTunnel }, { uid, resourceVersion })
}

/** Returns the status of the SSH tunnel of a running database, and its condition. */
export function sshTunnelFields(
  observed: Observed,
  server: DatabaseServer | undefined,
  now: Date,
): Pick<StatusFields<typeof DedicatedDatabase>, 'sshTunnel' | 'conditions'> {
  const { database } = observed
  return { sshTunnel: statusOf(observed, server), conditions: conditionsOf(database, decisionOf(observed), now) }
}

function statusOf({ database, endpoint }: Observed, server: DatabaseServer | undefined): SshTunnelStatus | null | undefined {
  if (!database.spec.sshTunnel) return null
  const before = database.status?.sshTunnel
  if (!endpoint || !before) return undefined
  const { sshHost: host, ports } = endpoint.spec
  const { edgeAddress } = server?.status ?? {}
  return {
    hostname: before.hostname,
    endpointRef: { name: endpoint.metadata.name },
    host,
    port: ports.ssh,
    ...(edgeAddress && { server: edgeAddress }),
  }
}

/** Condition of the SSH tunnel; undefined for a database without one. */
function decisionOf({ database: { spec, status }, endpoint }: Observed): Decision | undefined {
  if (!spec.sshTunnel) return undefined
  if (!endpoint) return notReady(SshTunnelReason.NoActiveEndpoint, 'no endpoint of its region accepts new tunnels')
  const broken = brokenItems(KEY_RULE, spec.sshTunnel.authorizedKeys)
  if (broken.length > 0) {
    const which = broken.map((index) => `spec.sshTunnel.authorizedKeys[${index}]`).join(', ')
    return notReady(SshTunnelReason.UnusableKey, `a key ${KEY_RULE.message}; no client can log in by ${which}`)
  }
  return ready(
    SshTunnelReason.Assigned,
    `${status?.sshTunnel?.hostname ?? ''}@${endpoint.spec.sshHost}, port ${endpoint.spec.ports.ssh}`,
  )
}

function conditionsOf(
  { metadata, status }: DedicatedDatabase,
  decision: Decision | undefined,
  now: Date,
): readonly Condition[] | undefined {
  const before = status?.conditions
  if (!decision) return before && withoutCondition(before, SSH_TUNNEL_READY)
  return withCondition(before, decision, { type: SSH_TUNNEL_READY, generation: metadata.generation, now })
}
