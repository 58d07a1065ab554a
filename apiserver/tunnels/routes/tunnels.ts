import type { JournalWiring } from '../../journal/journal-deps.ts'
import type { AnyRoute } from '../../http/route.ts'
import { createTunnelDeps, type TunnelWiring } from '../tunnel-deps.ts'
import { createTunnelPassword } from './create-tunnel-password.ts'
import { createTunnel } from './create-tunnel.ts'
import { deleteTunnelPassword } from './delete-tunnel-password.ts'
import { deleteTunnel } from './delete-tunnel.ts'
import { explainTunnel } from './explain-tunnel.ts'
import { getTunnelCertificate } from './get-tunnel-certificate.ts'
import { getTunnelConnect } from './get-tunnel-connect.ts'
import { getTunnel } from './get-tunnel.ts'
import { journalRoutes } from '../../journal/routes.ts'
import { listTunnelPasswords } from './list-tunnel-passwords.ts'
import { listTunnels } from './list-tunnels.ts'
import { patchTunnel } from './patch-tunnel.ts'

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
