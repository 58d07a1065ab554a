import { Counter, Gauge, Registry } from 'prom-client'

/** Why a record was not kept: no room for it, its like is never kept, or the journal was closed. */
export type DropReason = 'no_room' | 'refused' | 'closed'

export interface JournalMetrics {
  readonly kept: (records: number) => void
  readonly dropped: (reason: DropReason, records: number) => void
}

export interface Backlog {
  /** Records that are not kept yet. */
  readonly records: number
  /** How long the oldest of them has waited. */
  readonly lagMs: number
}

/** Metrics of the journal (surface, section 7). Once a registry. */
export function createJournalMetrics(backlog: () => Backlog, registry: Registry = new Registry()): JournalMetrics {
  const registers = [registry]
  const kept = new Counter({ name: 'mooring_journal_records_total', help: 'Records that the journal keeps.', registers })
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
    help: 'How long the oldest record that is not kept yet has waited.',
    registers,
    collect() {
      this.set(backlog().lagMs / 1e3)
    },
  })
  return { kept: (records) => kept.inc(records), dropped: (reason, records) => dropped.inc({ reason }, records) }
}
