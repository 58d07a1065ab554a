import type { JournalWiring } from '../../journal/journal-deps.ts'
import type { AnyRoute } from '../../http/route.ts'
import { createTunnelDeps, type TunnelWiring } from '../tunnel-deps.ts'
import { createTunnelPassword, deleteTunnelPassword, listTunnelPasswords } from './passwords.ts'
import { createTunnel } from './create-tunnel.ts'
import { deleteTunnel, patchTunnel } from './change-tunnel.ts'
import { explainTunnel } from './explain-tunnel.ts'
import { getTunnel, getTunnelCertificate, getTunnelConnect, listTunnels } from './read-tunnels.ts'
import { journalRoutes } from '../../journal/routes.ts'

const ROUTES = [
  ...[listTunnels, createTunnel, getTunnel, patchTunnel, deleteTunnel],
  ...[createTunnelPassword, listTunnelPasswords, deleteTunnelPassword],
  ...[getTunnelCertificate, getTunnelConnect, explainTunnel],
]

export type TunnelRoutesWiring = TunnelWiring & JournalWiring

/** Returns the routes of tunnels (docs/api.md, "Tunnels"). */
export function tunnelRoutes(wiring: TunnelRoutesWiring): AnyRoute[] {
  const deps = createTunnelDeps(wiring)
  return [...ROUTES.map((make) => make(deps)), ...journalRoutes(wiring)]
}
