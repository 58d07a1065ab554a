import type { Registry } from 'prom-client'
import { MooringError } from '../../shared/errors.ts'
import { createFailureLog } from '../failure-log.ts'
import { createFollowers } from '../followers.ts'
import { createJournalMetrics } from '../metrics.ts'
import { createOutbox, type Outbox } from '../outbox.ts'
import type { JournalWriter } from '../port.ts'
import { isRecordId } from './ids.ts'
import { createKeeper } from './keeper.ts'
import type { LoginSource } from './login.ts'

const SPOOL_BYTES = 32 * 1024 * 1024

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
 * Writes straight to PostgreSQL, from memory: for who can make again what is lost with the process. Acknowledges what is committed; while
 * the journal is away, acknowledgements wait.
 */
export function createPostgresqlWriter({ login, log, registry }: PostgresqlWriterDeps): JournalWriter & AsyncDisposable {
  const failures = createFailureLog(log, 'postgresql')
  const keeper = createKeeper(login)
  const metrics = createJournalMetrics(() => outbox.backlog(), registry)
  const outbox: Outbox = createOutbox({
    async keep(shipment) {
      const kept = await keeper.keep(shipment)
      failures.works()
      return kept
    },
    // A commit is durable when it returns.
    sync: () => Promise.resolve(),
    // Whoever follows reads from the database, where all edges write to.
    followers: createFollowers(() => undefined),
    onDrop: metrics.dropped,
    onKept: metrics.kept,
    onFailure: async (error) => failures.fails(error),
    spoolBytes: SPOOL_BYTES,
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

/** A record that is never kept is its maker's defect, told at once. */
export function withId<R extends { readonly id: string }>(record: R): R {
  if (isRecordId(record.id)) return record
  throw new MooringError('invalid_record', 'the id of a record must be a UUIDv7')
}
