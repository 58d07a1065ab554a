import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Chunk, chunksOf } from './chunks.ts'
import { createClientCounts } from './client-counts.ts'
import { dayTable, makeDay } from './layout.ts'
import { REQUEST_DAYS } from '../retention-days.ts'
import { createSums, sumsOf } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

export interface RequestKeeper {
  /**
   * Keeps those batches that are not there yet, each as request-text.ts has it, and sums them up. Within a transaction. Returns how many
   * requests are no records, or of no time that is kept.
   */
  keep(batches: readonly Uint8Array[], now: number): number
  /** After a rollback: what was prepared for it counts no more. */
  forget(): void
}

/** The half of the writing thread that keeps requests. */
export function createRequestKeeper(db: DatabaseSync, tunnels: TunnelNumbers): RequestKeeper {
  const sums = createSums(db)
  const clients = createClientCounts(db)
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')
  const statements = new Map<number, StatementSync>()

  function insertInto(day: number): StatementSync {
    const known = statements.get(day)
    if (known) return known
    if (!isDay.get(day)) db.exec(makeDay(day))
    // The id is given as text, the text as bytes.
    const made = db.prepare(
      `INSERT INTO ${dayTable(day)} (tunnel, id, records) VALUES (?, unhex(?, '-'), CAST(? AS TEXT)) ON CONFLICT DO NOTHING`,
    )
    // A few days of records can come at once; what is older is of tables that are gone.
    if (statements.size > REQUEST_DAYS + 2) statements.clear()
    statements.set(day, made)
    return made
  }

  /** Whether it was not there yet. */
  const insert = ({ day, tunnel, id, text }: Chunk): boolean => insertInto(day).run(tunnel, id, text).changes === 1

  function keep(batches: readonly Uint8Array[], now: number): number {
    let refused = 0
    const fresh: Chunk[] = []
    for (const batch of batches) {
      const read = chunksOf(batch, now, tunnels)
      refused += read.refused
      fresh.push(...read.chunks.filter(insert))
    }
    const requests = fresh.flatMap((chunk) => chunk.requests)
    sums.add(sumsOf(requests))
    clients.add(requests)
    return refused
  }

  function forget(): void {
    statements.clear()
    clients.forget()
  }

  return { keep, forget }
}
