import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Organization } from '../../crds/organization.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { JournalReader, Journal } from '../../journal/port.ts'
import type { DatabaseJournal } from '../../journal/databases.ts'
import type { WebhookJournal } from '../../journal/webhooks.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { createFollowLimit, type FollowLimit } from '../http/event-stream.ts'
import type { Scopes } from '../auth/scope.ts'
import { createTunnelLookup, type FindTunnel } from '../tunnels/tunnel-lookup.ts'
import { createPostgresqlReader, loginFromDirectory } from '../../journal/postgresql.ts'
import { openSpool } from '../../journal/spool.ts'

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

export interface ApiJournalDeps {
  /** Mount path of the Secret with the PostgreSQL login. */
  readonly login: string
  /** Directory of entries that are not in the journal yet; no other process uses it. */
  readonly directory: string
  readonly log: Logger
  readonly registry: Registry
}

/** Maximum size of the spool: some hundred thousand audit entries. */
const SPOOL_BYTES = 64 * 1024 * 1024

/**
 * Opens the journal of an API server in the cluster mode: it reads the records of all edges and writes its own audit entries through a spool.
 * @throws JournalFileError when the directory cannot be used
 */
export async function openApiJournal({
  login,
  directory,
  log,
  registry,
}: ApiJournalDeps): Promise<Journal & WebhookJournal & DatabaseJournal> {
  const spool = await openSpool({ directory, login, log, registry, bytes: SPOOL_BYTES })
  const reader = createPostgresqlReader({ login: loginFromDirectory(login), log })
  return {
    ...reader,
    ...spool,
    async [Symbol.asyncDispose]() {
      await spool[Symbol.asyncDispose]()
      await reader[Symbol.asyncDispose]()
    },
  }
}
