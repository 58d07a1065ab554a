import { setImmediate } from 'node:timers/promises'
import { MooringError } from '../shared/errors.ts'
import { backoffMs, sleep } from '../shared/timers.ts'
import type { Followers } from './followers.ts'
import type { Backlog, DropReason } from './metrics.ts'
import type { AuditRecord, ConnectionRecord, JournalWriter, RequestRecord } from './port.ts'
import { RequestLines } from './request-text.ts'

/** Maximum time that a request waits for its batch, in milliseconds. */
const BATCH_MS = 8
/** Maximum number of requests in a batch. */
const BATCH_RECORDS = 2_048
/** Delay between two attempts. */
const BACK_OFF = { baseMs: 250, maxMs: 5_000 }
/**
 * Maximum bytes of connections and audit entries that wait for an acknowledgement. They are never dropped: past this bound new
 * ones are rejected.
 */
const EVENT_BYTES = 32 * 1024 * 1024

/** Records that are shipped in one call. */
export interface Shipment {
  /** Batches in the format of request-text.ts, UTF-8. A retry ships the same batches. */
  readonly requests: readonly Uint8Array[]
  /** Connections and audit entries, each as JSON. */
  readonly connections: readonly string[]
  readonly audit: readonly string[]
}

export interface OutboxDeps {
  /**
   * Stores all records of the shipment or none. Idempotent: records stored earlier are skipped. Returns the number of requests
   * that can never be stored. An error with `again: false` is final; after any other error the shipment is retried.
   */
  readonly keep: (shipment: Shipment) => Promise<{ readonly refused: number }>
  /**
   * Resolves when all records kept before the call survive a power loss. Unlike with `keep`, an error without `again` is final:
   * only after an error with `again: true` is `sync` called again.
   */
  readonly sync: () => Promise<void>
  readonly followers: Followers
  readonly onDrop: (reason: DropReason, records: number) => void
  readonly onKept: (records: number) => void
  /** Called after `keep` or `sync` failed, before the next attempt. */
  readonly onFailure: (error: unknown) => Promise<void>
  /** Maximum bytes of waiting request records; past it the oldest are dropped. */
  readonly waitingBytes: number
  /** Maximum time that a request waits for its batch, in milliseconds. */
  readonly batchMs?: number
}

export interface Outbox extends JournalWriter {
  backlog(): Backlog
  /** Resolves when all records given before the call are kept, or when the attempt to keep them has failed. */
  flush(): Promise<void>
  /** Rejects new records, makes one more attempt to ship the waiting ones, and drops the rest. */
  close(): Promise<void>
}

interface Batch {
  readonly lines: Uint8Array
  readonly records: number
  readonly since: number
  /** Records of tunnels that have a follower. */
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
const isFinal = (error: unknown): boolean => error instanceof Error && 'again' in error && error.again === false
const isTransient = (error: unknown): boolean => error instanceof Error && 'again' in error && error.again === true

function shipmentOf(batches: readonly Batch[], events: readonly Event[]): Shipment {
  const ofKind = (wanted: Event['kind']) => events.filter(({ kind }) => kind === wanted).map(({ json }) => json)
  return { requests: batches.map(({ lines }) => lines), connections: ofKind('connections'), audit: ofKind('audit') }
}

/**
 * Creates the queue of records on their way to a journal. Batches of requests are bounded in bytes; each event has a caller that
 * waits for it. One shipment is under way at a time.
 */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { keep, sync, followers, onDrop, onKept, onFailure, waitingBytes, batchMs = BATCH_MS } = deps
  const closing = new AbortController()
  const lines = new RequestLines()
  let count = 0
  let since = 0
  let followed: RequestRecord[] = []
  let timer: NodeJS.Timeout | undefined
  let waiting: Batch[] = []
  let usedBytes = 0
  let events: Event[] = []
  let eventBytes = 0
  let running: Promise<void> | undefined
  let failing = Promise.withResolvers<undefined>()
  /** Events that are kept and not acknowledged yet. */
  let unsynced: Event[] = []
  let acknowledging: Promise<void> | undefined

  /** Makes a batch of the requests that arrived since the last one. */
  function seal(): void {
    clearTimeout(timer)
    timer = undefined
    if (count === 0) return
    const batch = { lines: lines.take(), records: count, since, followed }
    waiting.push(batch)
    usedBytes += batch.lines.length
    count = 0
    followed = []
    makeRoom()
    running ??= shipAll()
  }

  function makeRoom(): void {
    while (usedBytes > waitingBytes) {
      const oldest = waiting.shift()
      if (!oldest) return
      usedBytes -= oldest.lines.length
      onDrop('no_room', oldest.records)
    }
  }

  async function shipAll(): Promise<void> {
    // Collects all records of this turn of the event loop into the first shipment.
    await setImmediate()
    let failures = 0
    while (waiting.length > 0 || events.length > 0) {
      const batches = waiting
      const going = events
      waiting = []
      usedBytes = 0
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
    await sleep(backoffMs(BACK_OFF, failures), closing.signal)
  }

  function putBack(batches: readonly Batch[], going: readonly Event[]): void {
    waiting = [...batches, ...waiting]
    usedBytes = waiting.reduce((sum, { lines }) => sum + lines.length, 0)
    events = [...going, ...events]
    makeRoom()
  }

  /** @throws the error of `keep`, when a later attempt may succeed */
  async function ship(batches: readonly Batch[], going: readonly Event[]): Promise<void> {
    try {
      const { refused } = await keep(shipmentOf(batches, going))
      if (refused > 0) onDrop('refused', refused)
      settle(batches, going, refused)
    } catch (error) {
      if (!isFinal(error)) throw error
      await shipApart(batches, going, error)
    }
  }

  /** Called when a shipment failed for good: finds the invalid record, so that only it is lost. */
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
    for (const batch of batches) followers.notify(batch.followed)
    if (going.length === 0) return
    unsynced.push(...going)
    acknowledging ??= acknowledgeAll()
  }

  function forget(going: readonly Event[]): void {
    for (const { json } of going) eventBytes -= json.length
  }

  /** One sync acknowledges all events kept before it. Syncs do not overlap, because on a failing disk each may use space. */
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
        if (!isTransient(error) || closing.signal.aborted) {
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
    if (eventBytes + json.length > EVENT_BYTES) throw new MooringError('unavailable', 'too many records wait for the journal')
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
      const oldest = [waiting[0]?.since, count > 0 ? since : undefined, events[0]?.since].filter((time) => time !== undefined)
      return {
        records: recordsOf(waiting) + count + events.length,
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
      if (waiting.length > 0) onDrop('closed', recordsOf(waiting))
      for (const { done } of events) done.reject(closedError())
    },
  }
}
