import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Chunk, chunksOf } from './chunks.ts'
import { createClientCounts } from './client-counts.ts'
import { dayTable, makeDay } from './layout.ts'
import { REQUEST_DAYS } from '../retention-days.ts'
import { createSums, sumsOf } from './sums.ts'
import type { TunnelNumbers } from './tunnel-numbers.ts'

export interface RequestKeeper {
  /**
   * Keeps the batches that are new, each in the format of request-text.ts, and sums them up. Call it within a transaction.
   * Returns the number of requests that are invalid or of a time that is not kept.
   */
  keep(batches: readonly Uint8Array[], now: number): number
  /** Discards the state in memory, after a rollback. */
  forget(): void
}

/** Creates the part of the writing thread that keeps requests. */
export function createRequestKeeper(db: DatabaseSync, tunnels: TunnelNumbers): RequestKeeper {
  const sums = createSums(db)
  const clients = createClientCounts(db)
  const isDay = db.prepare('SELECT 1 FROM days WHERE day = ?')
  const statements = new Map<number, StatementSync>()

  function insertInto(day: number): StatementSync {
    const known = statements.get(day)
    if (known) return known
    if (!isDay.get(day)) db.exec(makeDay(day))
    // The id is passed as text, the lines as bytes.
    const made = db.prepare(
      `INSERT INTO ${dayTable(day)} (tunnel, id, records) VALUES (?, unhex(?, '-'), CAST(? AS TEXT)) ON CONFLICT DO NOTHING`,
    )
    // Records of a few days can arrive together; older statements belong to tables that are gone.
    if (statements.size > REQUEST_DAYS + 2) statements.clear()
    statements.set(day, made)
    return made
  }

  /** Inserts a chunk. Returns whether it is new. */
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
