import { Gauge, Registry } from 'prom-client'
import { type Backlog, createJournalMetrics, type DropReason } from '../metrics.ts'
import type { SpoolState } from './messages.ts'

export interface SpoolMetrics {
  readonly dropped: (reason: DropReason, records: number) => void
  /** Takes what the thread says of itself. Returns how many requests were dropped since the last time. */
  readonly show: (state: SpoolState) => number
}

type Counts = Pick<SpoolState, 'shipped' | 'dropped' | 'refused'>
const NONE: Counts = { shipped: 0, dropped: 0, refused: 0 }

/** The metrics of the journal, as a spool sees it (surface, section 7): what waits in memory and on the disk counts as waiting. */
export function createSpoolMetrics(inMemory: () => Backlog, registry: Registry = new Registry()): SpoolMetrics {
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

  return {
    dropped: metrics.dropped,
    show(now) {
      const since = now.shipped < (state?.shipped ?? 0) ? NONE : (state ?? NONE)
      metrics.kept(now.shipped - since.shipped)
      const dropped = Math.max(0, now.dropped - since.dropped)
      const refused = Math.max(0, now.refused - since.refused)
      if (dropped > 0) metrics.dropped('no_room', dropped)
      if (refused > 0) metrics.dropped('refused', refused)
      state = now
      return dropped + refused
    },
  }
}
