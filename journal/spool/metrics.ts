import { Counter, Gauge, Registry } from 'prom-client'
import { type Backlog, createJournalMetrics, type DropReason } from '../metrics.ts'
import type { SpoolState } from './messages.ts'

export interface SpoolMetrics {
  readonly dropped: (reason: DropReason, records: number) => void
  /** Takes what the thread says of itself. Returns how many requests and events were dropped, and records refused, since the last time. */
  readonly show: (state: SpoolState) => Lost
}

export interface SpoolMetricsDeps {
  readonly inMemory: () => Backlog
  readonly diskFails: () => boolean
  readonly registry: Registry | undefined
}

type Counts = Pick<SpoolState, 'shipped' | 'dropped' | 'droppedEvents' | 'refused'>
type Lost = Omit<Counts, 'shipped'>
const NONE: Counts = { shipped: 0, dropped: 0, droppedEvents: 0, refused: 0 }

/** The metrics of the journal, as a spool sees it (surface, section 7): what waits in memory and on the disk counts as waiting. */
export function createSpoolMetrics({ inMemory, diskFails, registry = new Registry() }: SpoolMetricsDeps): SpoolMetrics {
  let state: (Counts & Pick<SpoolState, 'waiting' | 'awayMs'>) | undefined
  const metrics = createJournalMetrics(() => {
    const { records, lagMs } = inMemory()
    return { records: records + (state?.waiting ?? 0), lagMs: Math.max(lagMs, state?.awayMs ?? 0) }
  }, registry)
  new Gauge({
    name: 'mooring_journal_away',
    help: 'Whether the journal cannot be reached now.',
    registers: [registry],
    collect() {
      this.set(state && state.awayMs > 0 ? 1 : 0)
    },
  })
  new Gauge({
    name: 'mooring_journal_spool_failing',
    help: 'Whether the disk of the spool cannot be written, synced or read now.',
    registers: [registry],
    collect() {
      this.set(diskFails() ? 1 : 0)
    },
  })
  const events = new Counter({
    name: 'mooring_journal_dropped_events_total',
    help: 'Connections and audit entries that were acknowledged and dropped: they filled the spool by themselves.',
    registers: [registry],
  })

  return {
    dropped: metrics.dropped,
    show(now) {
      const since = now.shipped < (state?.shipped ?? 0) ? NONE : (state ?? NONE)
      metrics.kept(now.shipped - since.shipped)
      const more = (what: keyof Lost): number => Math.max(0, now[what] - since[what])
      const [dropped, droppedEvents, refused] = [more('dropped'), more('droppedEvents'), more('refused')]
      if (dropped > 0) metrics.dropped('no_room', dropped)
      if (refused > 0) metrics.dropped('refused', refused)
      events.inc(droppedEvents)
      state = now
      return { dropped, droppedEvents, refused }
    },
  }
}
