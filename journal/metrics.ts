import { Counter, Gauge, Registry } from 'prom-client'
import type { SpoolState } from './spool/messages.ts'

/** Reason why a record was not kept: no space, rejected by the journal, or the journal was closed. */
export type DropReason = 'no_room' | 'refused' | 'closed'

export interface JournalMetrics {
  readonly kept: (records: number) => void
  readonly dropped: (reason: DropReason, records: number) => void
}

export interface Backlog {
  /** Number of records that are not kept yet. */
  readonly records: number
  /** Waiting time of the oldest of these records, in milliseconds. */
  readonly lagMs: number
}

/** Registers the metrics of the journal. Call it once for each registry. */
export function createJournalMetrics(backlog: () => Backlog, registry: Registry = new Registry()): JournalMetrics {
  const registers = [registry]
  const kept = new Counter({ name: 'mooring_journal_records_total', help: 'Records that the journal has kept.', registers })
  const dropped = new Counter({
    name: 'mooring_journal_dropped_records_total',
    help: 'Request records that could not be kept.',
    labelNames: ['reason'],
    registers,
  })
  new Gauge({
    name: 'mooring_journal_waiting_records',
    help: 'Records that are not kept yet.',
    registers,
    collect() {
      this.set(backlog().records)
    },
  })
  new Gauge({
    name: 'mooring_journal_lag_seconds',
    help: 'Waiting time of the oldest record that is not kept yet.',
    registers,
    collect() {
      this.set(backlog().lagMs / 1e3)
    },
  })
  return { kept: (records) => kept.inc(records), dropped: (reason, records) => dropped.inc({ reason }, records) }
}

export interface SpoolMetrics {
  readonly dropped: (reason: DropReason, records: number) => void
  /**
   * Records the state of the thread. Returns the numbers of dropped requests, dropped events and rejected records since the last
   * call.
   */
  readonly record: (state: SpoolState) => Lost
}

interface SpoolMetricsDeps {
  readonly inMemory: () => Backlog
  readonly diskFails: () => boolean
  readonly registry: Registry | undefined
}

type Counts = Pick<SpoolState, 'shipped' | 'dropped' | 'droppedEvents' | 'refused'>
type Lost = Omit<Counts, 'shipped'>
const NONE: Counts = { shipped: 0, dropped: 0, droppedEvents: 0, refused: 0 }

/** Registers the metrics of a spool. Records in memory and on disk count as waiting. */
export function createSpoolMetrics({ inMemory, diskFails, registry = new Registry() }: SpoolMetricsDeps): SpoolMetrics {
  let state: (Counts & Pick<SpoolState, 'waiting' | 'awayMs'>) | undefined
  const metrics = createJournalMetrics(() => {
    const { records, lagMs } = inMemory()
    return { records: records + (state?.waiting ?? 0), lagMs: Math.max(lagMs, state?.awayMs ?? 0) }
  }, registry)
  new Gauge({
    name: 'mooring_journal_away',
    help: 'Whether the journal is unavailable: 1 or 0.',
    registers: [registry],
    collect() {
      this.set(state && state.awayMs > 0 ? 1 : 0)
    },
  })
  new Gauge({
    name: 'mooring_journal_spool_failing',
    help: 'Whether the disk of the spool fails to write, sync or read: 1 or 0.',
    registers: [registry],
    collect() {
      this.set(diskFails() ? 1 : 0)
    },
  })
  const events = new Counter({
    name: 'mooring_journal_dropped_events_total',
    help: 'Acknowledged connections and audit entries that were dropped because the spool was full.',
    registers: [registry],
  })

  return {
    dropped: metrics.dropped,
    record(now) {
      const since = now.shipped < (state?.shipped ?? 0) ? NONE : (state ?? NONE)
      metrics.kept(now.shipped - since.shipped)
      const increase = (what: keyof Lost): number => Math.max(0, now[what] - since[what])
      const [dropped, droppedEvents, refused] = [increase('dropped'), increase('droppedEvents'), increase('refused')]
      if (dropped > 0) metrics.dropped('no_room', dropped)
      if (refused > 0) metrics.dropped('refused', refused)
      events.inc(droppedEvents)
      state = now
      return { dropped, droppedEvents, refused }
    },
  }
}
