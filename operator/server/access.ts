import { isIP } from 'node:net'
import type { DatabaseServer } from '../../crds/database-server.ts'
import { type Admitted, engineSources } from '../engines/access.ts'
import type { AdminTarget } from '../engines/engine.ts'

export type ServerAccess = NonNullable<DatabaseServer['spec']['access']>

/** Returns the restriction of a dedicated server; undefined for every other server. */
export const accessOf = ({ spec }: Pick<DatabaseServer, 'spec'>): ServerAccess | undefined =>
  spec.tenancy === 'dedicated' ? spec.access : undefined

/** Access rule of the engine of a dedicated server; `sources` undefined: every source. */
export interface EngineAccess {
  readonly sources: Admitted['engine']
}

/** Returns the access rule for the engine of a server outside a cluster; undefined for a server without `spec.access`. */
export function engineAccess(
  server: DatabaseServer,
  way: Pick<AdminTarget, 'insiders' | 'isPublished'>,
): EngineAccess | undefined {
  const access = accessOf(server)
  return access && { sources: engineSources(access, way) }
}

/** Ranges of the addresses of clients on the same machine. */
const THIS_MACHINE = ['127.0.0.0/8', '::1/128']

/** Whether a server has no address outside the cluster. Outside a cluster: whether only clients of its machine reach it. */
export const isPrivate = (server: Pick<DatabaseServer, 'spec'>): boolean => accessOf(server)?.isPrivate === true

/**
 * Returns the sources that the engine of a server outside a cluster always admits: for a private server the same machine, for one with an SSH
 * tunnel its edge, else none. The edge is a process of this machine. It connects over IPv4's loopback from {@link EDGE_SOURCE}, to a `listen`
 * that is one address from that address, and otherwise from an address that other clients of the machine have, too.
 * @param listen address that the server listens on; undefined for a server with a published port, which sees no addresses of clients
 */
export function insidersOf(server: DatabaseServer, listen: string | undefined): Pick<AdminTarget, 'insiders' | 'edgeSource'> {
  const admitsEdges = accessOf(server)?.edges !== undefined
  if (!isPrivate(server) && !admitsEdges) return {}
  if (isPrivate(server) || listen === undefined || !isIP(listen)) return { insiders: THIS_MACHINE }
  if (OVER_IPV4_LOOPBACK.has(listen)) return { insiders: [`${EDGE_SOURCE}/32`], edgeSource: EDGE_SOURCE }
  return { insiders: OVER_IPV6_LOOPBACK.has(listen) ? THIS_MACHINE : [...THIS_MACHINE, listen] }
}

/** Local address of the edge's connections to database servers over loopback. Other programs of the machine do not use it by themselves. */
const EDGE_SOURCE = '127.83.72.1'

/** Addresses to listen on with which the edge connects over loopback. */
const OVER_IPV4_LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0'])
const OVER_IPV6_LOOPBACK: ReadonlySet<string> = new Set(['::1', '::'])

/** Returns a text that differs when a server needs another supervision: another address to listen on, or other insiders. */
export const wayOf = (server: DatabaseServer): string =>
  JSON.stringify([isPrivate(server), accessOf(server)?.edges !== undefined])

/** Address on which a private server listens outside a cluster. Clients connect to the same address. */
export const PRIVATE_ADDRESS = '127.0.0.1'
