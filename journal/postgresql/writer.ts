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

const WAITING_BYTES = 32 * 1024 * 1024

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

/** Rejects a record without a valid id at once: it is a defect of the caller, and could never be kept. */
export function withId<R extends { readonly id: string }>(record: R): R {
  if (isRecordId(record.id)) return record
  throw new MooringError('invalid_record', 'record id must be a UUIDv7')
}
