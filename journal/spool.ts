import type { Registry } from 'prom-client'
import { every } from './every.ts'
import { createFollowers } from './followers.ts'
import { createLogLimit } from './log-limit.ts'
import { createDiskHealth, type DiskTask } from './spool/disk-health.ts'
import { createSpoolMetrics } from './spool/metrics.ts'
import { createOutbox, type Outbox, type Shipment } from './outbox.ts'
import type { JournalWriter } from './port.ts'
import { withId } from './postgresql/writer.ts'
import type { SpoolReply, SpoolRequest, SpoolStart, SpoolState } from './spool/messages.ts'
import { superviseThread } from './thread/supervised-thread.ts'

const SPOOL_BYTES = 256 * 1024 * 1024
/** Of requests that wait in memory while the disk takes none. */
const MEMORY_BYTES = 32 * 1024 * 1024
/** With what the thread takes, a request is on its way to the disk within 10 ms. */
const BATCH_MS = 5
const LOOK_MS = 1_000
const JOURNAL_LOOK_MS = 10_000
const DRAIN_MS = 5_000
const LOG_MS = 60_000
const WORKER = new URL('spool/spool-worker.ts', import.meta.url)

interface Logger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

export interface SpoolOptions {
  /** Of the spool's files, which no other process uses; made if missing. */
  readonly directory: string
  /** Directory with the files `uri` and `ca.crt` of the journal's login; they may come later, and change. */
  readonly login: string
  readonly log: Logger
  readonly registry?: Registry | undefined
  /** Bytes on disk at the most: see `openSpool`. */
  readonly bytes?: number
  /** Milliseconds between two looks at which journal it is. */
  readonly journalLookMs?: number
}

/** How edges and apiservers write to the journal in PostgreSQL. */
export interface Spool extends JournalWriter, AsyncDisposable {
  /** Request records that were not kept, so far. */
  dropped(): number
  /**
   * Called within `journalLookMs`, ten seconds by default, after the journal has become another one, laid out anew: what the one before had is gone. Returns how to stop
   * that.
   */
  onReplaced(listener: () => void): () => void
  /** Resolves when all that was given before the call is in the journal, or after `withinMs` milliseconds. */
  shipped(withinMs: number): Promise<void>
}

/**
 * Opens a spool: records are on the disk some milliseconds after they were given, and connections and audit entries when acknowledged;
 * from there a thread ships them to PostgreSQL in order, whenever that is there. What a process that was killed left is shipped by the
 * next. Disposing of it ships what it can in five seconds; the rest stays on the disk.
 *
 * Past `bytes` on the disk the oldest requests go, counted; when there are none left, the oldest connections and audit entries, counted and
 * told apart. On a disk that is full or fails nothing is acknowledged; it is tried again, ever more seldom, until that works.
 * @throws JournalFileError when the directory cannot be used
 */
export async function openSpool({
  directory,
  login,
  log,
  registry,
  bytes = SPOOL_BYTES,
  journalLookMs = JOURNAL_LOOK_MS,
}: SpoolOptions): Promise<Spool> {
  const start: SpoolStart = { directory, login, bytes }
  const thread = await superviseThread<SpoolRequest, SpoolReply>({ program: WORKER, path: JSON.stringify(start), log })
  const disk = createDiskHealth({ directory, log })
  const metrics = createSpoolMetrics({ inMemory: () => outbox.backlog(), diskFails: () => disk.failing, registry })
  const [ofLoss, ofEvents, ofSilence] = [createLogLimit(LOG_MS), createLogLimit(LOG_MS), createLogLimit(LOG_MS)]
  let dropped = 0
  let wasAway = false
  /** Of the journal, when it was last looked for. */
  let identity: string | undefined
  const replaced = new Set<() => void>()

  /** @throws JournalFileError */
  async function askDisk(task: DiskTask, question: SpoolRequest): Promise<void> {
    try {
      await thread.ask(question)
      disk.works(task)
    } catch (error) {
      disk.fails(task, error)
      throw error
    }
  }

  const outbox: Outbox = createOutbox({
    async keep(shipment: Shipment) {
      await askDisk('write', { type: 'keep', ...shipment })
      return { refused: 0 }
    },
    sync: () => askDisk('sync', { type: 'sync' }),
    // Whoever follows reads from the database, where all edges write to.
    followers: createFollowers(() => undefined),
    onDrop(reason, records) {
      dropped += records
      metrics.dropped(reason, records)
    },
    onKept: () => undefined,
    // Told by then.
    onFailure: () => Promise.resolve(),
    spoolBytes: MEMORY_BYTES,
    batchMs: BATCH_MS,
  })

  async function look(): Promise<void> {
    const state = await thread.ask({ type: 'state' })
    if (state.type !== 'state') return
    const { dropped: requests, droppedEvents: events, refused } = metrics.show(state)
    const { waiting } = state
    dropped += requests + refused
    if (events > 0)
      ofEvents(() => log.warn({ events, waiting }, 'acknowledged events were dropped: they fill the spool by themselves'))
    if (requests + refused > 0)
      ofLoss(() =>
        log.warn({ requests, refused, waiting }, 'records were dropped: there was no room, or the journal does not take them'),
      )
    tell(state)
  }

  async function lookAtJournal(): Promise<void> {
    if (replaced.size === 0) return
    // One that is away is told of by what is shipped.
    const found = await thread.ask({ type: 'journal' }).catch(() => undefined)
    if (found?.type !== 'journal' || found.identity === undefined || found.identity === identity) return
    const isFirst = identity === undefined
    identity = found.identity
    if (isFirst) return
    log.warn({ identity }, 'the journal is another one: what the one before had is gone')
    for (const listener of replaced) listener()
  }

  function tell({ failure, waiting, disk: trouble }: SpoolState): void {
    if (trouble === '') disk.works('ship')
    else disk.fails('ship', trouble)
    const isAway = failure !== ''
    if (isAway && !wasAway)
      log.warn({ reason: failure, waiting }, 'the journal is away; what happens is spooled until it is back')
    if (!isAway && wasAway) log.info({ waiting }, 'the journal is back')
    wasAway = isAway
  }

  const looking = every(LOOK_MS, () =>
    look().catch((error: unknown) => ofSilence(() => log.warn({ err: error }, 'the spool did not answer'))),
  )

  const watching = every(journalLookMs, lookAtJournal)

  return {
    request: (record) => outbox.request(record),
    connection: async (record) => outbox.connection(withId(record)),
    audit: async (record) => outbox.audit(withId(record)),
    dropped: () => dropped,
    onReplaced(listener) {
      replaced.add(listener)
      // What is lost before it is known what it was would be missed.
      void lookAtJournal()
      return () => replaced.delete(listener)
    },
    async shipped(withinMs) {
      await outbox.flush()
      await thread.ask({ type: 'drain', withinMs })
    },
    async [Symbol.asyncDispose]() {
      await looking[Symbol.asyncDispose]()
      // No more looks; one that is under way ends with the thread.
      const watched = watching[Symbol.asyncDispose]()
      await outbox.close()
      // One that has died leaves all it had on the disk.
      await thread
        .ask({ type: 'drain', withinMs: DRAIN_MS })
        .catch((error: unknown) => log.warn({ err: error }, 'the spool was not shipped'))
      await thread.close({ type: 'close' })
      await watched
    },
  }
}
