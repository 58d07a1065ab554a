import type { Registry } from 'prom-client'
import type { DatabaseJournal } from './databases.ts'
import type { JournalReader, JournalWriter } from './port.ts'
import { createDatabaseRecords } from './postgresql/databases.ts'
import { createDeliveries, WEBHOOK_CHANNEL } from './postgresql/deliveries.ts'
import { createFollowing } from './postgresql/follow.ts'
import { createListener } from './postgresql/listen.ts'
import { createWorkListeners } from './work-listeners.ts'
import type { WebhookJournal } from './webhooks.ts'
import type { LoginSource } from './postgresql/client.ts'
import { createJournalPool } from './postgresql/pool.ts'
import { createEventReader, createRequestReader } from './postgresql/read-records.ts'
import { createStatsReader } from './postgresql/read-stats.ts'
import { createFailureLog } from './failure-log.ts'
import { createFollowers } from './followers.ts'
import { createJournalMetrics } from './metrics.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { withId } from './postgresql/record-format.ts'
import { createKeeper } from './postgresql/keeper.ts'

export { type JournalLogin, type LoginSource, loginFromDirectory } from './postgresql/client.ts'
export { createJournalOwner, type JournalOwner, type JournalOwnerDeps } from './postgresql/owner.ts'

// Journal of cluster mode, in PostgreSQL. Three kinds of process use it: edges write requests and connections; apiservers read
// everything and write audit entries; the operator owns the schema, and writes audit entries and the ends of lost sessions. Edges
// and apiservers write through journal/spool.ts.

const WAITING_BYTES = 32 * 1024 * 1024

export interface PostgresqlReaderDeps {
  readonly login: LoginSource
  readonly log: { warn(details: object, message: string): void }
}

export type PostgresqlReader = JournalReader & WebhookJournal & DatabaseJournal & AsyncDisposable

/**
 * Reads the journal in PostgreSQL. It connects at the first call, so it may be created before the journal. Followers receive the
 * requests of all edges, some milliseconds after they were kept. Reads throw MooringError `journal_away` while the journal is
 * unavailable.
 */
export function createPostgresqlReader({ login, log }: PostgresqlReaderDeps): PostgresqlReader {
  const pool = createJournalPool(login)
  const following = createFollowing({ ask: pool.ask, login, log })
  const search = createRequestReader(pool.ask)
  const work = createWorkListeners()
  const listener = createListener({
    login,
    channel: WEBHOOK_CHANNEL,
    onPayload: work.notify,
    onListening: async () => work.notify(),
    // Work is also polled for.
    onFailure: () => undefined,
  })

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
    databases: createDatabaseRecords(pool.ask),
    webhooks: {
      ...createDeliveries(pool.ask),
      onWork(added) {
        listener.start()
        return work.listen(added)
      },
    },
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]()
      await following[Symbol.asyncDispose]()
      await pool[Symbol.asyncDispose]()
    },
  }
}

interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

export interface PostgresqlWriterDeps {
  readonly login: LoginSource
  readonly log: Logger
  readonly registry?: Registry | undefined
}

/**
 * Writes to PostgreSQL from memory, for records that can be created again when the process loses them. A record is acknowledged
 * when it is committed; while the journal is unavailable, acknowledgements wait.
 */
export function createPostgresqlWriter({ login, log, registry }: PostgresqlWriterDeps): JournalWriter & AsyncDisposable {
  const failures = createFailureLog(log, 'postgresql')
  const keeper = createKeeper(login)
  const metrics = createJournalMetrics(() => outbox.backlog(), registry)
  const outbox: Outbox = createOutbox({
    async keep(shipment) {
      const kept = await keeper.keep(shipment)
      failures.succeeded()
      return kept
    },
    // A commit is durable when it returns.
    sync: () => Promise.resolve(),
    // Followers read from the database, which all edges write to.
    followers: createFollowers(() => undefined),
    onDrop: metrics.dropped,
    onKept: metrics.kept,
    onFailure: async (error) => failures.failed(error),
    waitingBytes: WAITING_BYTES,
  })

  return {
    request: (record) => outbox.request(record),
    connection: async (record) => outbox.connection(withId(record)),
    audit: async (record) => outbox.audit(withId(record)),
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await keeper[Symbol.asyncDispose]()
    },
  }
}
