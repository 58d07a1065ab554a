import { backoffMs, whenAborted, sleep } from '../../shared/timers.ts'
import type { Shipment } from '../outbox.ts'
import { KeepError, type Keeper } from '../postgresql/keeper.ts'
import { type Frame, splitRequests } from './frame.ts'
import type { Batch, SegmentLog } from './segment-log.ts'

/** Maximum of records and bytes in a shipment. */
const MOST = { records: 2_048, bytes: 1024 * 1024 }
/** Time that new records wait for more, to be shipped together, in milliseconds. */
const LINGER_MS = 50
const BACK_OFF = { baseMs: 500, maxMs: 15_000 }

export interface ShipperDeps {
  /** Logs to ship, in this order. */
  readonly logs: readonly SegmentLog[]
  readonly keeper: Pick<Keeper, 'keep'>
  readonly onShipped: (records: number) => void
  readonly onRefused: (records: number) => void
  /** Called after each attempt with the journal's error, undefined for a success. A failed attempt is retried. */
  readonly onTry: (error: unknown) => void
  /** Called after each read of the logs with the disk's error, undefined for a success. A failed read is retried. */
  readonly onDisk: (error: unknown) => void
  /** Returns a number from 0 to 1, for the back-off. */
  readonly random?: () => number
}

export interface Shipper {
  /** Reports that there are records to ship. */
  wake(): void
  /**
   * Ships all records; a waiting retry starts at once. Resolves to true when no record is left, to false after `ms` milliseconds.
   */
  drain(ms: number): Promise<boolean>
  close(): Promise<void>
}

/** Batch that was read from a log. */
interface Reading {
  readonly log: SegmentLog
  readonly batch: Batch
}

/**
 * Ships the records of the logs to the journal, oldest first, and takes them out of the logs once they are kept. A log that
 * cannot be read does not delay the others; a file that cannot be removed delays nothing.
 */
export function createShipper(deps: ShipperDeps): Shipper {
  const { logs, keeper, onShipped, onRefused, onTry, onDisk, random = Math.random } = deps
  const closing = new AbortController()
  let hurry = new AbortController()
  let running: Promise<void> | undefined
  let failures = 0
  /** Error of the last removal of a file that is taken as a whole. */
  let unremoved: unknown

  async function run(): Promise<void> {
    await pause(LINGER_MS)
    while (!closing.signal.aborted) {
      const { readings, error } = readAll()
      if (readings.length > 0) await attempt(readings)
      else if (error === undefined) break
      else await backOff()
    }
    running = undefined
  }

  function readAll(): { readonly readings: readonly Reading[]; readonly error: unknown } {
    const readings: Reading[] = []
    let error: unknown
    for (const log of logs) {
      try {
        const batch = log.read(MOST)
        if (batch) readings.push({ log, batch })
      } catch (cause) {
        error = cause
      }
    }
    onDisk(error ?? unremoved)
    return { readings, error }
  }

  async function attempt(readings: readonly Reading[]): Promise<void> {
    try {
      onRefused(await keep(readings.flatMap(({ batch }) => batch.frames)))
    } catch (error) {
      onTry(error)
      await backOff()
      return
    }
    onTry(undefined)
    failures = 0
    unremoved = undefined
    for (const reading of readings) settle(reading)
  }

  function settle({ log, batch }: Reading): void {
    try {
      log.take(batch)
    } catch (error) {
      unremoved = error
    }
    if (batch.lost > 0) onRefused(batch.lost)
    onShipped(batch.records)
  }

  async function backOff(): Promise<void> {
    failures += 1
    await pause(backoffMs(BACK_OFF, failures, random))
  }

  /** Returns the number of records that the journal rejects. @throws KeepError when a later attempt may succeed */
  async function keep(frames: readonly Frame[]): Promise<number> {
    if (frames.length === 0) return 0
    try {
      return (await keeper.keep(shipmentOf(frames))).refused
    } catch (error) {
      if (!(error instanceof KeepError) || error.again) throw error
      // The shipment has an invalid record: the other records must not be lost with it.
      const [first, second] = halvesOf(frames)
      if (second.length === 0) return recordsOf(first)
      return (await keep(first)) + (await keep(second))
    }
  }

  async function pause(ms: number): Promise<void> {
    await sleep(ms, AbortSignal.any([closing.signal, hurry.signal]))
  }

  return {
    wake() {
      running ??= run()
    },
    async drain(ms) {
      const deadline = AbortSignal.timeout(ms)
      while (!deadline.aborted && !closing.signal.aborted && logs.some(({ records }) => records > 0)) {
        hurry.abort()
        hurry = new AbortController()
        running ??= run()
        await Promise.race([running, whenAborted(AbortSignal.any([deadline, closing.signal]))])
      }
      return logs.every(({ records }) => records === 0)
    },
    async close() {
      closing.abort()
      await running
    },
  }
}

function shipmentOf(frames: readonly Frame[]): Shipment {
  const of = (kind: Frame['kind']) => frames.filter((frame) => frame.kind === kind).map(({ payload }) => payload)
  const texts = (kind: Frame['kind']) => of(kind).map((payload) => payload.toString())
  return { requests: of('requests'), connections: texts('connection'), audit: texts('audit') }
}

const recordsOf = (frames: readonly Frame[]): number => frames.reduce((sum, { records }) => sum + records, 0)

/** Divides frames. The second half is empty when a single record is left. */
function halvesOf(frames: readonly Frame[]): readonly [readonly Frame[], readonly Frame[]] {
  const [only] = frames
  if (frames.length > 1 || only?.kind !== 'requests') {
    const middle = Math.ceil(frames.length / 2)
    return [frames.slice(0, middle), frames.slice(middle)]
  }
  const pieces = splitRequests(only.payload, Math.ceil(only.records / 2))
  const [first, ...rest] = Array.from(pieces, (piece): Frame => ({ kind: 'requests', ...piece }))
  return [first ? [first] : [], rest]
}
