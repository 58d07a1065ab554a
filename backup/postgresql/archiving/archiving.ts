import type pg from 'pg'
import { MooringError } from '../../../shared/errors.ts'
import { pause } from '../../../shared/timers.ts'
import { ProblemReason } from '../../agent-state.ts'
import type { BackupClock } from '../../clock.ts'
import { problemOf, type Problems } from '../../problems.ts'
import type { Repository } from '../../repository/port.ts'
import { bodyOf } from '../../repository/small-objects.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { type Mark, observeSince, writeMark } from './marks.ts'
import { quietKey } from '../catalog/keys.ts'
import type { Quiet } from '../catalog/restorable.ts'
import type { PostgresqlFiles } from '../server.ts'
import { countSpooled, forgetDropped, isDropped, ship } from './shipper.ts'

export interface ArchivingDeps {
  readonly repository: Repository
  readonly prefix: string
  readonly server: PostgresqlFiles
  readonly clock: BackupClock
  readonly signal: AbortSignal
  readonly problems: Problems
  /** Catalog of the repository; undefined until it has been listed. */
  readonly catalog: () => Catalog | undefined
}

/** Continuous archiving of one server: moves the spool into the repository. Marks show up to which time that is done. */
export interface Archiving {
  /** Ships what is in the spool. */
  ship(): Promise<void>
  /** Forgets that the server dropped WAL, before a base backup that begins a new window. */
  beginWindow(): Promise<void>
  /** Writes a mark if anything was committed since the last one. */
  mark(): Promise<void>
  /** Writes a mark, and waits until it is in the repository. @throws MooringError `wal_not_archived` after `withinMs` */
  flush(withinMs: number): Promise<void>
  /** Time after the last mark in the repository for which nothing was committed. */
  quiet(): Quiet | undefined
  /** Takes over the {@link quiet} time of an earlier agent. */
  resume(quiet: Quiet | undefined): void
  close(): Promise<void>
}

/** Number of files in the spool beyond which no marks are written, as each mark adds a segment. */
const BUSY_FILES = 4
const FLUSH_POLL_MS = 50

export function createArchiving(deps: ArchivingDeps): Archiving {
  const { repository, prefix, server, clock, signal, problems } = deps
  /** Times of marks whose segments are not shipped yet, by file. */
  const pending = new Map<string, number>()
  /** Files whose shipping began while a mark was being written. */
  const meanwhile = new Set<string>()
  let last: Mark | undefined
  let quiet: Quiet | undefined
  let client: pg.Client | undefined
  let shipping: Promise<void> = Promise.resolve()
  let marking: Promise<unknown> = Promise.resolve()

  /** Runs `work` while no other mark is written: marks share one session. */
  function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = marking.then(work)
    marking = result.catch(() => undefined)
    return result
  }

  async function session(): Promise<pg.Client> {
    if (client) return client
    const opened = await server.connect()
    const forget = (): void => {
      if (client !== opened) return
      client = undefined
      // The next session may be with a server on other data.
      last = undefined
    }
    opened.on('error', forget)
    opened.on('end', forget)
    client = opened
    return opened
  }

  async function closeSession(): Promise<void> {
    const old = client
    client = undefined
    last = undefined
    await old?.end().catch(() => undefined)
  }

  const isShipped = (mark: Mark): boolean => !pending.has(mark.file)

  async function write(): Promise<Mark> {
    for (;;) {
      meanwhile.clear()
      const mark = await writeMark(await session())
      // The segment is shipped without the time of the mark: its shipping began before the server's answer came.
      if (meanwhile.has(mark.file)) continue
      pending.set(mark.file, mark.at)
      last = mark
      return mark
    }
  }

  async function observe(): Promise<void> {
    const mark = last
    const { at, quiet: isQuiet } = mark ? await observeSince(await session(), mark) : { at: 0, quiet: false }
    if (mark && isQuiet && isShipped(mark)) quiet = { markedAt: mark.at, until: at }
    else if (!mark || !isQuiet || (await isDropped(server.spoolDirectory))) {
      // A dropped mark is never shipped, and only a later segment reveals the gap behind it.
      if ((await countSpooled(server.spoolDirectory)) < BUSY_FILES) await write()
    }
  }

  /** Stores the quiet time before a gap, so that the window before the gap extends to its end. */
  async function storeQuiet(catalog: Catalog, { markedAt, until }: Quiet): Promise<void> {
    if (until <= markedAt) return
    const key = quietKey(markedAt, until)
    const { sizeBytes } = await repository.put(`${prefix}/${key}`, bodyOf(Buffer.from('nothing was committed\n')), signal)
    catalog.add({ key, sizeBytes })
  }

  /** Reports that the server dropped WAL, as it does when the spool is full. */
  async function reportDropped(): Promise<void> {
    if (!(await isDropped(server.spoolDirectory))) return
    const message =
      'the repository was slow or away for so long that the server dropped WAL: the restorable window ends there, and a new backup begins the next'
    problems.fail('spool', { reason: ProblemReason.unavailable, message })
  }

  async function shipAll(): Promise<void> {
    const catalog = deps.catalog()
    if (!catalog) return
    try {
      const markOf = (file: string): number | undefined => {
        meanwhile.add(file)
        return pending.get(file)
      }
      const onShipped = async (file: string): Promise<void> => {
        const at = pending.get(file)
        // Files are shipped in order: an earlier one that is still pending was dropped by the server, as the spool was full.
        for (const earlier of pending.keys()) if (earlier <= file) pending.delete(earlier)
        if (at === undefined) return
        if (quiet && !isContinued(catalog, quiet.markedAt)) await storeQuiet(catalog, quiet)
        quiet = { markedAt: at, until: at }
      }
      await reportDropped()
      await ship({ repository, prefix, spoolDirectory: server.spoolDirectory, catalog, markOf, onShipped }, signal)
      problems.succeed('archive')
    } catch (error) {
      if (!signal.aborted) problems.fail('archive', problemOf(error, ProblemReason.unavailable))
    }
  }

  signal.addEventListener('abort', () => void closeSession(), { once: true })

  return {
    ship: () => (shipping = shipping.then(shipAll)),
    async mark() {
      try {
        await exclusively(observe)
        problems.succeed('mark')
      } catch (error) {
        await closeSession()
        if (!signal.aborted) problems.fail('mark', problemOf(error, ProblemReason.serverUnreachable))
      }
    },
    async flush(withinMs) {
      const mark = await exclusively(write)
      const deadline = clock.now() + withinMs
      while (!isShipped(mark)) {
        if (clock.now() > deadline)
          throw new MooringError('wal_not_archived', `the server did not archive ${mark.file}: check archive_command in its log`)
        await pause(clock, FLUSH_POLL_MS, signal)
        signal.throwIfAborted()
        await this.ship()
      }
    },
    beginWindow: () => forgetDropped(server.spoolDirectory),
    quiet: () => quiet,
    resume(earlier) {
      quiet ??= earlier
    },
    close: closeSession,
  }
}

/** Whether the log has a later mark than that of the time `markedAt`, without a gap between them. */
function isContinued(catalog: Catalog, markedAt: number): boolean {
  const runs = [...catalog.archived().wal.values()].flat()
  return runs.every(({ latest }) => latest?.at !== markedAt)
}
