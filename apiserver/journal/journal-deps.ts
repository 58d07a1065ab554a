import type { Organization } from '../../crds/organization.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { JournalReader } from '../../journal/port.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { createFollowLimit, type FollowLimit } from '../http/event-stream.ts'
import type { Scopes } from '../auth/scope.ts'
import { createTunnelLookup, type FindTunnel } from '../tunnels/tunnel-lookup.ts'

/** Dependencies that the process provides. */
export interface JournalWiring {
  readonly scopes: Scopes
  readonly access: Access
  /** Cache with `tunnelLookupIndexes` (tunnel-lookup.ts). */
  readonly tunnels: Cache<typeof Tunnel>
  readonly organizations: Cache<typeof Organization>
  readonly journal: JournalReader
  readonly now: () => Date
}

/** Dependencies of the routes that read the journal. */
export interface JournalDeps extends JournalWiring {
  readonly find: FindTunnel
  readonly followers: FollowLimit
}

export function createJournalDeps(wiring: JournalWiring): JournalDeps {
  return { ...wiring, find: createTunnelLookup(wiring), followers: createFollowLimit() }
}
