import { open } from 'node:fs/promises'
import type { Registry } from 'prom-client'
import { MooringError } from '../shared/errors.ts'
import { every } from '../shared/timers.ts'
import type { DatabaseJournal } from './databases.ts'
import { createFailureLog } from './failure-log.ts'
import { createFollowers } from './followers.ts'
import { createJournalMetrics, type DropReason } from './metrics.ts'
import { createOutbox, type Outbox, type Shipment } from './outbox.ts'
import type { Journal, JournalReader } from './port.ts'
import type { ReaderReply, ReaderRequest, WriterReply, WriterRequest } from './sqlite/messages.ts'
import { bytesOfId } from './sqlite/ids.ts'
import { createDatabaseRecords } from './sqlite/databases.ts'
import { createOutboxReader, createOutboxWriter, type Read } from './sqlite/outbox.ts'
import { createWorkListeners } from './work-listeners.ts'
import { type SupervisedThread, superviseThread } from './supervised-thread.ts'
import type { WebhookJournal } from './webhooks.ts'

const WAITING_BYTES = 64 * 1024 * 1024
const CHECKPOINT_MS = 2_000
const SWEEP_MS = 60_000
const WRITER = new URL('sqlite/writer-worker.ts', import.meta.url)
const READER = new URL('sqlite/reader-worker.ts', import.meta.url)

interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

export interface SqliteJournalOptions {
  /** Path of the file; its directory must exist. SQLite adds `-wal` and `-shm` files beside it. */
  readonly path: string
  readonly log: Logger
  /** Returns the time in milliseconds since the epoch. */
  readonly now?: () => number
  readonly registry?: Registry | undefined
  /** Maximum bytes of request records that wait in memory while the file cannot be written; past it the oldest are dropped. */
  readonly waitingBytes?: number
}

export interface SqliteJournal extends Journal, WebhookJournal, DatabaseJournal {
  /** Removes all records past their retention, as happens by itself each minute. @throws MooringError `unavailable` */
  sweep(): Promise<void>
  /** Number of request records that were dropped so far. */
  dropped(): number
}

/**
 * Opens or creates the journal in a SQLite file. Requests reach the operating system within some 10 ms, so that they survive a
 * crash of this process; connections and audit entries are on disk when acknowledged. Writes that fail (full disk, crashed
 * thread) are retried until they succeed: acknowledgements wait, and past a bound the oldest requests are dropped.
 * @throws MooringError `newer_layout`, `unavailable`
 */
export async function openSqliteJournal(options: SqliteJournalOptions): Promise<SqliteJournal> {
  const { path, log } = options
  const parts = new AsyncDisposableStack()
  try {
    const writer = await superviseThread<WriterRequest, WriterReply>({ program: WRITER, path, log })
    parts.defer(() => writer.close({ type: 'close' }))
    const reader = await superviseThread<ReaderRequest, ReaderReply>({ program: READER, path, log })
    parts.defer(() => reader.close({ type: 'close' }))
    return wire(options, { writer, reader }, parts)
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

interface Threads {
  readonly writer: SupervisedThread<WriterRequest, WriterReply>
  readonly reader: SupervisedThread<ReaderRequest, ReaderReply>
}

/** Connects the parts. Each goes onto `parts`, so that they stop in the opposite order. */
function wire(options: SqliteJournalOptions, { writer, reader }: Threads, parts: AsyncDisposableStack): SqliteJournal {
  const { path, log, now = Date.now, registry, waitingBytes = WAITING_BYTES } = options
  const failures = createFailureLog(log, path)
  const followers = createFollowers((error) => log.warn({ err: error }, 'request log listener failed'))
  const metrics = createJournalMetrics(() => outbox.backlog(), registry)
  const work = createWorkListeners()
  const read = createRead((question) => reader.ask(question))
  let dropped = 0
  let written = false

  async function keep(shipment: Shipment): Promise<{ readonly refused: number }> {
    const reply = await writer.ask({ type: 'keep', now: now(), ...shipment })
    written = true
    failures.succeeded()
    if (shipment.connections.length > 0) work.notify()
    return { refused: reply.type === 'kept' ? reply.refused : 0 }
  }

  async function write(request: WriterRequest): Promise<WriterReply> {
    const reply = await writer.ask(request)
    written = true
    return reply
  }

  async function checkpoint(): Promise<void> {
    written = false
    await reader.ask({ type: 'checkpoint' }).catch(failures.failed)
  }

  async function sweep(): Promise<void> {
    for (let more = true; more;) {
      const reply = await writer.ask({ type: 'sweep', now: now() })
      written = true
      more = reply.type === 'swept' && reply.more
    }
  }

  const { sync } = createLogSync(path)
  const outbox: Outbox = createOutbox({
    keep,
    followers,
    waitingBytes,
    sync,
    onKept: metrics.kept,
    onDrop(reason: DropReason, records: number) {
      dropped += records
      metrics.dropped(reason, records)
    },
    async onFailure(error) {
      failures.failed(error)
      // A write-ahead log that could not grow starts over after a checkpoint.
      await checkpoint()
    },
  })
  parts.defer(() => outbox.close())
  parts.use(every(CHECKPOINT_MS, async () => (written ? checkpoint() : undefined)))
  parts.use(every(SWEEP_MS, () => sweep().catch(failures.failed)))

  return {
    ...createSqliteReader(read),
    request: (record) => outbox.request(record),
    connection: async (record) => outbox.connection(withId(record)),
    audit: async (record) => outbox.audit(withId(record)),
    follow: (tunnel, listener) => followers.follow(tunnel, listener),
    webhooks: {
      ...createOutboxReader(read),
      ...createOutboxWriter({ ask: write, onWork: work.notify }),
      onWork: work.listen,
    },
    databases: createDatabaseRecords({ ask: write, read, sync }),
    sweep,
    dropped: () => dropped,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

/** Rejects a record without a valid id at once: it is a defect of the caller, and could never be kept. */
function withId<R extends { readonly id: string }>(record: R): R {
  if (bytesOfId(record.id)) return record
  throw new MooringError('invalid_record', 'record id must be a UUIDv7')
}

type Ask = (question: ReaderRequest) => Promise<ReaderReply>

/** Creates the function that asks the reading thread for a reply of one type. */
function createRead(ask: Ask): Read {
  return async function read(type, question) {
    const reply = await ask(question)
    if (isOf(type, reply)) return reply
    throw new MooringError('internal', `the journal answered ${question.type} with ${reply.type}`)
  }
}

/** Creates the reading side of a journal, which asks the reading thread. */
function createSqliteReader(read: Read): Omit<JournalReader, 'follow'> {
  return {
    requests: async (filter, page) => (await read('requests', { type: 'requests', filter, page })).records,
    connections: async (filter, page) => (await read('connections', { type: 'connections', filter, page })).records,
    auditEntries: async (filter, page) => (await read('audit', { type: 'audit', filter, page })).records,
    audited: async (changes) => (await read('audited', { type: 'audited', changes })).changes,
    stats: async (tunnel, span) => (await read('stats', { type: 'stats', tunnel, span })).stats,
    openSessions: async () => (await read('connections', { type: 'openSessions' })).records,
    presence: async (tunnels) => (await read('presence', { type: 'presence', tunnels })).presence,
  }
}

function isOf<T extends ReaderReply['type']>(type: T, reply: ReaderReply): reply is Extract<ReaderReply, { type: T }> {
  return reply.type === type
}

/** Makes commits durable from outside the writing thread: an fsync does not delay other commits. */
interface LogSync {
  /** Resolves when all commits before the call are on disk. Waiting calls share one fsync. */
  readonly sync: () => Promise<void>
}

/**
 * Creates the sync of the file at `path`. A commit in WAL mode is durable once the log is on disk. `synchronous = FULL` would
 * sync it within each commit (https://www.sqlite.org/pragma.html#pragma_synchronous); here a descriptor of our own does it.
 * SQLite itself syncs what a checkpoint moves into the file. Closing the descriptor releases no locks: SQLite holds none on the
 * log.
 */
function createLogSync(path: string): LogSync {
  let current: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  async function after(before: Promise<void>): Promise<void> {
    // Its callers handle its failure.
    await Promise.allSettled([before])
    next = undefined
    current = syncFile(`${path}-wal`)
    await current
  }

  return { sync: () => (next ??= after(current)) }
}

async function syncFile(log: string): Promise<void> {
  try {
    await using file = await open(log, 'r+')
    await file.datasync()
  } catch (error) {
    // The last connection has closed, as after a crash of a thread: it moved the whole log into the file, and synced the file.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
