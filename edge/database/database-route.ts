import { addressList, type AddressList } from '../../crds/formats/address-list.ts'
import { type DedicatedDatabase, firewallRulesOf } from '../../crds/dedicated-database.ts'
import { partsOf, USUAL_PORTS } from '../../crds/motor.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'
import type { Route } from '../route.ts'
import type { RouteAbout } from '../tunnel-route.ts'

const DEFAULTS = TunnelConfig.parse({})
/** Allows every address. */
const EVERYWHERE = addressList([])
const NOWHERE: AddressList = { allows: () => false }

/**
 * Returns the route of a database's SSH tunnel; undefined for a database without an SSH tunnel at this endpoint, and for one that is being
 * deleted. The address of the server comes from the status, which only the operator writes.
 */
export function databaseRoute(
  database: DedicatedDatabase | undefined,
  { endpoint, domain, passwordsOf }: RouteAbout,
): Route | undefined {
  if (!database || database.metadata.deletionTimestamp !== undefined) return undefined
  const { sshTunnel, motor } = database.spec
  const assigned = database.status?.sshTunnel
  if (!sshTunnel || assigned?.endpointRef.name !== endpoint) return undefined
  const { hostname, server } = assigned
  const host = `${hostname}.${domain}`
  return {
    id: database.metadata.uid,
    namespace: database.metadata.namespace ?? '',
    name: database.metadata.name,
    hostname,
    host,
    url: `https://${host}`,
    config: { ...DEFAULTS, ...sshTunnel },
    database: { port: USUAL_PORTS[partsOf(motor).family], server, internalHost: database.status?.internalHost },
    ingress: EVERYWHERE,
    sshSources: sourcesOf(database),
    passwords: passwordsOf(database),
  }
}

/** Returns the addresses of clients that may log in: those of the firewall rules, as without the tunnel. */
function sourcesOf(database: DedicatedDatabase): AddressList {
  const rules = firewallRulesOf(database)
  if (!rules) return EVERYWHERE
  return rules.length === 0 ? NOWHERE : addressList(rules.map(({ cidr }) => cidr))
}
