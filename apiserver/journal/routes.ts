import { createJournalDeps, type JournalWiring } from './journal-deps.ts'
import type { AnyRoute } from '../http/route.ts'
import { getTunnelStats } from './get-tunnel-stats.ts'
import { listAuditEntries } from './list-audit-entries.ts'
import { listOrganizationAudit } from './list-organization-audit.ts'
import { listTunnelConnections } from './list-tunnel-connections.ts'
import { listTunnelRequests } from './list-tunnel-requests.ts'

export type { JournalWiring }

/** Returns the routes that read the journal (docs/api.md, "Request log and statistics", "Audit log"). */
export function journalRoutes(wiring: JournalWiring): AnyRoute[] {
  const deps = createJournalDeps(wiring)
  return [listTunnelConnections, listTunnelRequests, getTunnelStats, listAuditEntries, listOrganizationAudit].map((make) =>
    make(deps),
  )
}
