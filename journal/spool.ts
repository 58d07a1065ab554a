import type { Registry } from 'prom-client'
import { every } from '../shared/timers.ts'
import { createFollowers } from './followers.ts'
import { createLogLimit, createDiskHealth, type DiskTask } from './failure-log.ts'
import { createSpoolMetrics } from './metrics.ts'
import { createOutbox, type Outbox, type Shipment } from './outbox.ts'
import type { JournalWriter } from './port.ts'
import { withId } from './postgresql/record-format.ts'
import type { SpoolReply, SpoolRequest, SpoolStart, SpoolState } from './spool/messages.ts'
import { superviseThread } from './supervised-thread.ts'

const SPOOL_BYTES = 256 * 1024 * 1024
/** Maximum bytes of requests that wait in memory while the disk cannot be written. */
const MEMORY_BYTES = 32 * 1024 * 1024
/**
 * Maximum wait for a batch in milliseconds. Together with the thread's own time a request is on its way to the disk within 10 ms.
 */
const BATCH_MS = 5
const POLL_MS = 1_000
const IDENTITY_CHECK_MS = 10_000
const DRAIN_MS = 5_000
const LOG_MS = 60_000
const WORKER = new URL('spool/spool-worker.ts', import.meta.url)

interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

export interface SpoolOptions {
  /** Directory of the spool's files. No other process may use it. It is created if missing. */
  readonly directory: string
  /** Directory with the files `uri` and `ca.crt` of the journal's login. The files may appear later, and change. */
  readonly login: string
  readonly log: Logger
  readonly registry?: Registry | undefined
  /** Maximum bytes on disk: see `openSpool`. */
  readonly bytes?: number
  /** Interval of checks of the journal's identity, in milliseconds. */
  readonly identityCheckMs?: number
}

/** Writing side of the journal in PostgreSQL, for edges and apiservers. */
export interface Spool extends JournalWriter, AsyncDisposable {
  /** Number of request records that were dropped so far. */
  dropped(): number
  /**
   * Calls `listener` after the journal's database was replaced by a new one, without the records of the old one. The check runs
   * every `identityCheckMs`, ten seconds by default. Returns a function that removes the listener.
   */
  onReplaced(listener: () => void): () => void
  /** Resolves when all records given before the call are in the journal, or after `withinMs` milliseconds. */
  shipped(withinMs: number): Promise<void>
}

/**
 * Opens a spool. Requests are on disk some milliseconds after the call, connections and audit entries when acknowledged. A thread
 * ships the records to PostgreSQL in order, whenever PostgreSQL is available. The next process ships the records that a killed
 * process left. Disposing ships records for at most five seconds; the rest stays on disk.
 *
 * Past `bytes` on disk the oldest requests are dropped and counted. Without requests the oldest connections and audit entries are
 * dropped and counted separately. A full or failing disk acknowledges nothing; writes are retried with growing delays until one
 * succeeds.
 * @throws JournalFileError when the directory cannot be used
 */
export async function openSpool({
  directory,
  login,
  log,
  registry,
  bytes = SPOOL_BYTES,
  identityCheckMs = IDENTITY_CHECK_MS,
}: SpoolOptions): Promise<Spool> {
  const start: SpoolStart = { directory, login, bytes }
  const thread = await superviseThread<SpoolRequest, SpoolReply>({ program: WORKER, path: JSON.stringify(start), log })
  const disk = createDiskHealth({ directory, log })
  const metrics = createSpoolMetrics({ inMemory: () => outbox.backlog(), diskFails: () => disk.failing, registry })
  const [ofLoss, ofEvents, ofSilence] = [createLogLimit(LOG_MS), createLogLimit(LOG_MS), createLogLimit(LOG_MS)]
  let dropped = 0
  let wasAway = false
  /** Identity of the journal at the last check. */
  let identity: string | undefined
  const replaced = new Set<() => void>()

  /** @throws JournalFileError */
  async function askDisk(task: DiskTask, question: SpoolRequest): Promise<void> {
    try {
      await thread.ask(question)
      disk.succeeded(task)
    } catch (error) {
      disk.failed(task, error)
      throw error
    }
  }

  const outbox: Outbox = createOutbox({
    async keep(shipment: Shipment) {
      await askDisk('write', { type: 'keep', ...shipment })
      return { refused: 0 }
    },
    sync: () => askDisk('sync', { type: 'sync' }),
    // Followers read from the database, which all edges write to.
    followers: createFollowers(() => undefined),
    onDrop(reason, records) {
      dropped += records
      metrics.dropped(reason, records)
    },
    onKept: () => undefined,
    // `disk` has logged the failure by then.
    onFailure: () => Promise.resolve(),
    waitingBytes: MEMORY_BYTES,
    batchMs: BATCH_MS,
  })

  async function poll(): Promise<void> {
    const state = await thread.ask({ type: 'state' })
    if (state.type !== 'state') return
    const { dropped: requests, droppedEvents: events, refused } = metrics.record(state)
    const { waiting } = state
    dropped += requests + refused
    if (events > 0)
      ofEvents(() => log.warn({ events, waiting }, 'spool is full: acknowledged connections and audit entries dropped'))
    if (requests + refused > 0)
      ofLoss(() => log.warn({ requests, refused, waiting }, 'records dropped: spool is full, or the journal rejected them'))
    logChanges(state)
  }

  async function checkIdentity(): Promise<void> {
    if (replaced.size === 0) return
    // The shipper reports a journal that is unavailable.
    const found = await thread.ask({ type: 'journal' }).catch(() => undefined)
    if (found?.type !== 'journal' || found.identity === undefined || found.identity === identity) return
    const isFirst = identity === undefined
    identity = found.identity
    if (isFirst) return
    log.warn({ identity }, 'journal was replaced: the records of the old one are gone')
    for (const listener of replaced) listener()
  }

  function logChanges({ failure, waiting, disk: trouble }: SpoolState): void {
    if (trouble === '') disk.succeeded('ship')
    else disk.failed('ship', trouble)
    const isAway = failure !== ''
    if (isAway && !wasAway) log.warn({ reason: failure, waiting }, 'journal is unavailable; records are spooled until it is back')
    if (!isAway && wasAway) log.info({ waiting }, 'journal is available again')
    wasAway = isAway
  }

  const polling = every(POLL_MS, () =>
    poll().catch((error: unknown) => ofSilence(() => log.warn({ err: error }, 'spool thread did not answer'))),
  )

  const checking = every(identityCheckMs, checkIdentity)

  return {
    request: (record) => outbox.request(record),
    connection: async (record) => outbox.connection(withId(record)),
    audit: async (record) => outbox.audit(withId(record)),
    dropped: () => dropped,
    onReplaced(listener) {
      replaced.add(listener)
      // A replacement before the first check would be missed.
      void checkIdentity()
      return () => replaced.delete(listener)
    },
    async shipped(withinMs) {
      await outbox.flush()
      await thread.ask({ type: 'drain', withinMs })
    },
    async [Symbol.asyncDispose]() {
      await polling[Symbol.asyncDispose]()
      // Starts no more checks. A running one ends with the thread.
      const checked = checking[Symbol.asyncDispose]()
      await outbox.close()
      // A thread that has crashed leaves all its records on disk.
      await thread
        .ask({ type: 'drain', withinMs: DRAIN_MS })
        .catch((error: unknown) => log.warn({ err: error }, 'spool was not shipped; its records stay on disk'))
      await thread.close({ type: 'close' })
      await checked
    },
  }
}
