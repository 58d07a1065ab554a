import type pg from 'pg'

/** What there may be any amount of, whoever sends it. */
const EXPENDABLE = ['requests', 'refusals']

/** A piece of a table with something in it. */
export interface Filled {
  readonly table: string
  readonly name: string
  readonly bytes: number
}

/**
 * Empties pieces of the tables that may be emptied until the database has at most `bytes`. Returns their names. Throws what the driver throws;
 * what was emptied by then stays so.
 */
export async function makeRoom(client: pg.Client, bytes: number): Promise<readonly string[]> {
  const { rows } = await client.query<{ used: string }>('SELECT pg_database_size(current_database()) AS used')
  const excess = Number(rows[0]?.used) - bytes
  const names = excess > 0 ? piecesToEmpty(await filledPieces(client), excess) : []
  // Whoever writes to it goes on, which a piece that is gone would not let him.
  for (const name of names) await client.query(`TRUNCATE ${name}`)
  return names
}

/** Always the oldest piece of that table which takes most room, until there is enough: who fills the disk pays for it. Pure; `pieces` are oldest first. */
export function piecesToEmpty(pieces: readonly Filled[], excess: number): readonly string[] {
  const left = [...pieces]
  const names: string[] = []
  for (let freed = 0; freed < excess;) {
    const largest = largestTable(left)
    const index = left.findIndex(({ table }) => table === largest)
    const [piece] = index < 0 ? [] : left.splice(index, 1)
    if (!piece) break
    names.push(piece.name)
    freed += piece.bytes
  }
  return names
}

function largestTable(pieces: readonly Filled[]): string | undefined {
  const sizes = new Map<string, number>()
  for (const { table, bytes } of pieces) sizes.set(table, (sizes.get(table) ?? 0) + bytes)
  return [...sizes].toSorted(([, a], [, b]) => b - a)[0]?.[0]
}

async function filledPieces(client: pg.Client): Promise<readonly Filled[]> {
  const { rows } = await client.query<{ table: string; name: string; bytes: string }>(
    `SELECT parent.relname AS table, piece.relname AS name, pg_total_relation_size(piece.oid) AS bytes
     FROM pg_inherits JOIN pg_class AS parent ON parent.oid = inhparent JOIN pg_class AS piece ON piece.oid = inhrelid
     WHERE parent.relnamespace = 'journal'::regnamespace AND parent.relkind = 'p' AND parent.relname = ANY ($1)
       AND pg_relation_size(piece.oid) > 0 ORDER BY piece.relname`,
    [EXPENDABLE],
  )
  return rows.map(({ table, name, bytes }) => ({ table, name, bytes: Number(bytes) }))
}
