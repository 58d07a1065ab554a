import { createJournalDeps, type JournalWiring } from './journal-deps.ts'
import type { AnyRoute } from '../http/route.ts'
import { getTunnelStats, listTunnelConnections } from './connections-and-stats.ts'
import { listAuditEntries, listOrganizationAudit } from './audit-log.ts'
import { listTunnelRequests } from './request-log.ts'

export type { JournalWiring }

/** Returns the routes that read the journal (docs/api.md, "Request log and statistics", "Audit log"). */
export function journalRoutes(wiring: JournalWiring): AnyRoute[] {
  const deps = createJournalDeps(wiring)
  return [listTunnelConnections, listTunnelRequests, getTunnelStats, listAuditEntries, listOrganizationAudit].map((make) =>
    make(deps),
  )
}
