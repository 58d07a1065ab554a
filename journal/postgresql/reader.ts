import type { JournalReader } from '../port.ts'
import { createFollowing } from './follow.ts'
import type { LoginSource } from './login.ts'
import { createJournalPool } from './pool.ts'
import { createEventReader } from './read-events.ts'
import { createRequestReader } from './read-requests.ts'
import { createStatsReader } from './read-stats.ts'

export interface PostgresqlReaderDeps {
  readonly login: LoginSource
  readonly log: { warn(details: object, message: string): void }
}

export type PostgresqlReader = JournalReader & AsyncDisposable

/**
 * Reads the journal in PostgreSQL. It connects at the first call, so it may be created before the journal. Followers receive the
 * requests of all edges, some milliseconds after they were kept. Reads throw MooringError `journal_away` while the journal is
 * unavailable.
 */
export function createPostgresqlReader({ login, log }: PostgresqlReaderDeps): PostgresqlReader {
  const pool = createJournalPool(login)
  const following = createFollowing({ ask: pool.ask, login, log })
  const search = createRequestReader(pool.ask)

  return {
    ...createEventReader(pool.ask),
    stats: createStatsReader(pool.ask),
    async requests(filter, page) {
      const found = await search(filter, page)
      // Followers receive a request before a search returns it.
      await following.delivered(filter.tunnel)
      return found
    },
    follow: following.follow,
    async [Symbol.asyncDispose]() {
      await following[Symbol.asyncDispose]()
      await pool[Symbol.asyncDispose]()
    },
  }
}
