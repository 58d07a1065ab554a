import { Counter, Gauge, Registry } from 'prom-client'

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
