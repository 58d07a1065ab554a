import { setImmediate, setTimeout } from 'node:timers/promises'
import { MooringError } from '../shared/errors.ts'
import { backoffMs } from '../shared/backoff.ts'
import type { Followers } from './followers.ts'
import type { Backlog, DropReason } from './metrics.ts'
import type { AuditRecord, ConnectionRecord, JournalWriter, RequestRecord } from './port.ts'
import { RequestLines } from './request-lines.ts'

/** A request waits no longer than this for others to be shipped with. */
const BATCH_MS = 8
/** Nor for more than so many. */
const BATCH_RECORDS = 2_048
/** Between two tries. */
const BACK_OFF = { baseMs: 250, maxMs: 5_000 }
/** Of connections and audit entries that are not acknowledged; those are never dropped: past it they are refused. */
const EVENT_BYTES = 32 * 1024 * 1024

/** What is shipped at once. */
export interface Shipment {
  /** Batches as request-text.ts has them, UTF-8; what is shipped again comes in the same ones. */
  readonly requests: readonly Uint8Array[]
  /** Each as JSON. */
  readonly connections: readonly string[]
  readonly audit: readonly string[]
}

export interface OutboxDeps {
  /**
   * Keeps all of it or nothing; what was kept before changes nothing. `again` of what it throws says that a later try may work, as with a
   * full disk. Returns how many requests are never kept.
   */
  readonly keep: (shipment: Shipment) => Promise<{ readonly refused: number }>
  /** Resolves when what was kept before the call survives even the loss of power. It is tried again when `again` of what it throws is true. */
  readonly sync: () => Promise<void>
  readonly followers: Followers
  readonly onDrop: (reason: DropReason, records: number) => void
  readonly onKept: (records: number) => void
  /** Called when shipping or `sync` fails, and before the next try. */
  readonly onFailure: (error: unknown) => Promise<void>
  /** Bytes of request records that wait at the most; then the oldest go. */
  readonly spoolBytes: number
  /** Milliseconds that a request waits for others to be shipped with. */
  readonly batchMs?: number
}

export interface Outbox extends JournalWriter {
  backlog(): Backlog
  /** Resolves when what was given before the call is kept, unless that fails: then when the try has failed. */
  flush(): Promise<void>
  /** Takes no more, ships what it has if that works at once, and gives up on the rest. */
  close(): Promise<void>
}

interface Batch {
  readonly lines: Uint8Array
  readonly records: number
  readonly since: number
  /** Those that somebody follows. */
  readonly followed: readonly RequestRecord[]
}

interface Event {
  readonly kind: 'connections' | 'audit'
  readonly json: string
  readonly since: number
  readonly done: PromiseWithResolvers<undefined>
}

const closedError = () => new MooringError('unavailable', 'the journal is closed')
const recordsOf = (batches: readonly Batch[]): number => batches.reduce((sum, { records }) => sum + records, 0)
const mayWorkLater = (error: unknown): boolean => !(error instanceof Error && 'again' in error && error.again === false)
const saysAgain = (error: unknown): boolean => error instanceof Error && 'again' in error && error.again === true

function shipmentOf(batches: readonly Batch[], events: readonly Event[]): Shipment {
  const ofKind = (wanted: Event['kind']) => events.filter(({ kind }) => kind === wanted).map(({ json }) => json)
  return { requests: batches.map(({ lines }) => lines), connections: ofKind('connections'), audit: ofKind('audit') }
}

/** What is on its way to a journal: batches of requests, bounded; events, each with somebody waiting for it. One shipment at a time. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { keep, sync, followers, onDrop, onKept, onFailure, spoolBytes, batchMs = BATCH_MS } = deps
  const closing = new AbortController()
  const lines = new RequestLines()
  let count = 0
  let since = 0
  let followed: RequestRecord[] = []
  let timer: NodeJS.Timeout | undefined
  let spool: Batch[] = []
  let spooled = 0
  let events: Event[] = []
  let eventBytes = 0
  let running: Promise<void> | undefined
  let failing = Promise.withResolvers<undefined>()
  /** Kept, and not acknowledged yet. */
  let unsynced: Event[] = []
  let acknowledging: Promise<void> | undefined

  /** Makes a batch of the requests that came since the last one. */
  function seal(): void {
    clearTimeout(timer)
    timer = undefined
    if (count === 0) return
    const batch = { lines: lines.take(), records: count, since, followed }
    spool.push(batch)
    spooled += batch.lines.length
    count = 0
    followed = []
    makeRoom()
    running ??= shipAll()
  }

  function makeRoom(): void {
    while (spooled > spoolBytes) {
      const oldest = spool.shift()
      if (!oldest) return
      spooled -= oldest.lines.length
      onDrop('no_room', oldest.records)
    }
  }

  async function shipAll(): Promise<void> {
    // Lets all that comes in this turn of the event loop into the first shipment.
    await setImmediate()
    let failures = 0
    while (spool.length > 0 || events.length > 0) {
      const batches = spool
      const going = events
      spool = []
      spooled = 0
      events = []
      try {
        await ship(batches, going)
        failures = 0
      } catch (error) {
        putBack(batches, going)
        failing.resolve(undefined)
        failing = Promise.withResolvers()
        await onFailure(error)
        if (closing.signal.aborted) break
        failures += 1
        await backOff(failures)
      }
    }
    running = undefined
  }

  async function backOff(failures: number): Promise<void> {
    await setTimeout(backoffMs(BACK_OFF, failures), undefined, { signal: closing.signal, ref: false }).catch(ignoreAbort)
  }

  function putBack(batches: readonly Batch[], going: readonly Event[]): void {
    spool = [...batches, ...spool]
    spooled = spool.reduce((sum, { lines }) => sum + lines.length, 0)
    events = [...going, ...events]
    makeRoom()
  }

  /** @throws what may work later */
  async function ship(batches: readonly Batch[], going: readonly Event[]): Promise<void> {
    try {
      const { refused } = await keep(shipmentOf(batches, going))
      if (refused > 0) onDrop('refused', refused)
      settle(batches, going, refused)
    } catch (error) {
      if (mayWorkLater(error)) throw error
      await shipApart(batches, going, error)
    }
  }

  /** Something in it is never kept: what it came with must not suffer. */
  async function shipApart(batches: readonly Batch[], going: readonly Event[], error: unknown): Promise<void> {
    if (batches.length + going.length > 1) {
      for (const batch of batches) await ship([batch], [])
      for (const event of going) await ship([], [event])
      return
    }
    const lost = recordsOf(batches)
    if (lost > 0) onDrop('refused', lost)
    refuse(going, error)
  }

  function settle(batches: readonly Batch[], going: readonly Event[], refused: number): void {
    onKept(recordsOf(batches) + going.length - refused)
    for (const batch of batches) followers.tell(batch.followed)
    if (going.length === 0) return
    unsynced.push(...going)
    acknowledging ??= acknowledgeAll()
  }

  function forget(going: readonly Event[]): void {
    for (const { json } of going) eventBytes -= json.length
  }

  /** One sync at a time, for all that was kept by then: on a disk that fails each try may cost room. */
  async function acknowledgeAll(): Promise<void> {
    let failures = 0
    while (unsynced.length > 0) {
      const going = unsynced
      unsynced = []
      try {
        await sync()
        failures = 0
        acknowledge(going)
      } catch (error) {
        if (!saysAgain(error) || closing.signal.aborted) {
          refuse(going, error)
          continue
        }
        unsynced = [...going, ...unsynced]
        await onFailure(error)
        failures += 1
        await backOff(failures)
      }
    }
    acknowledging = undefined
  }

  function acknowledge(going: readonly Event[]): void {
    forget(going)
    for (const { done } of going) done.resolve(undefined)
  }

  function refuse(going: readonly Event[], error: unknown): void {
    forget(going)
    for (const { done } of going) done.reject(error)
  }

  async function event(kind: Event['kind'], record: ConnectionRecord | AuditRecord): Promise<void> {
    if (closing.signal.aborted) throw closedError()
    const json = JSON.stringify(record)
    if (eventBytes + json.length > EVENT_BYTES) throw new MooringError('unavailable', 'too many records wait to be kept')
    const done = Promise.withResolvers<undefined>()
    events.push({ kind, json, since: performance.now(), done })
    eventBytes += json.length
    running ??= shipAll()
    await done.promise
  }

  return {
    request(record) {
      if (closing.signal.aborted) {
        onDrop('closed', 1)
        return
      }
      if (count === 0) since = performance.now()
      lines.add(record)
      count += 1
      if (followers.has(record.tunnel)) followed.push(record)
      if (count >= BATCH_RECORDS) seal()
      else timer ??= globalThis.setTimeout(seal, batchMs)
    },
    connection: (record) => event('connections', record),
    audit: (record) => event('audit', record),
    backlog() {
      const oldest = [spool[0]?.since, count > 0 ? since : undefined, events[0]?.since].filter((time) => time !== undefined)
      return {
        records: recordsOf(spool) + count + events.length,
        lagMs: oldest.length === 0 ? 0 : performance.now() - Math.min(...oldest),
      }
    },
    async flush() {
      seal()
      await Promise.race([running, failing.promise])
    },
    async close() {
      seal()
      closing.abort()
      await running
      await acknowledging
      if (spool.length > 0) onDrop('closed', recordsOf(spool))
      for (const { done } of events) done.reject(closedError())
    },
  }
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error
}
