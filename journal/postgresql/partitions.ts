import type pg from 'pg'
import type { PartitionedTable } from './tables.ts'

const DAY_MS = 86_400_000
const DAY_MINUTES = 1_440
/** Number of days ahead for which partitions exist: the operator may be down for so long. */
const AHEAD_DAYS = 7

/** Partition of a table, from its first day to before its last. */
export interface Partition {
  readonly name: string
  readonly table: string
  /** Bounds of the partition, as SQL literals. */
  readonly from: string
  readonly to: string
}

/** Returns the partitions that a table must have on day `today`. Pure. */
export function requiredPartitions(table: PartitionedTable, today: number): readonly Partition[] {
  const partitions: Partition[] = []
  const start = (day: number) => Math.floor(day / table.days) * table.days
  for (let day = start(today - table.lateDays); day <= today + AHEAD_DAYS; day += table.days)
    partitions.push(partitionAt(table, day))
  return partitions
}

/** Returns the existing partitions whose last day is past the retention. Pure. */
export function expiredPartitions(table: PartitionedTable, names: readonly string[], today: number): readonly string[] {
  return names.filter((name) => {
    const day = Number(name.slice(table.name.length + 1))
    return name.startsWith(`${table.name}_`) && Number.isInteger(day) && day + table.days <= today - table.keepDays
  })
}

function partitionAt(table: PartitionedTable, day: number): Partition {
  const bound = table.by === 'id' ? idBound : (at: number) => String(at * DAY_MINUTES)
  return { name: `${table.name}_${day}`, table: table.name, from: bound(day), to: bound(day + table.days) }
}

const idBound = (day: number): string => `lowest_id(${day * DAY_MS})`

/** Tables that may be emptied: clients can cause any number of rows in them. */
const EXPENDABLE = ['requests', 'refusals']

/** Partition of a table that is not empty. */
export interface FilledPartition {
  readonly table: string
  readonly name: string
  readonly bytes: number
}

/**
 * Empties partitions of these tables until the database has at most `bytes`. Returns the names of the partitions. Throws what the
 * driver throws; partitions emptied before the error stay empty.
 */
export async function makeRoom(client: pg.Client, bytes: number): Promise<readonly string[]> {
  const { rows } = await client.query<{ used: string }>('SELECT pg_database_size(current_database()) AS used')
  const excess = Number(rows[0]?.used) - bytes
  const names = excess > 0 ? partitionsToEmpty(await filledPartitions(client), excess) : []
  // TRUNCATE lets writers go on; a dropped partition would not.
  for (const name of names) await client.query(`TRUNCATE ${name}`)
  return names
}

/**
 * Selects partitions to empty: repeatedly the oldest one of the table with most bytes, until `excess` bytes are free.
 * `partitions` are sorted oldest first. Pure.
 */
export function partitionsToEmpty(partitions: readonly FilledPartition[], excess: number): readonly string[] {
  const left = [...partitions]
  const names: string[] = []
  for (let freed = 0; freed < excess;) {
    const largest = largestTable(left)
    const index = left.findIndex(({ table }) => table === largest)
    const [partition] = index < 0 ? [] : left.splice(index, 1)
    if (!partition) break
    names.push(partition.name)
    freed += partition.bytes
  }
  return names
}

function largestTable(partitions: readonly FilledPartition[]): string | undefined {
  const sizes = new Map<string, number>()
  for (const { table, bytes } of partitions) sizes.set(table, (sizes.get(table) ?? 0) + bytes)
  return [...sizes].toSorted(([, a], [, b]) => b - a)[0]?.[0]
}

async function filledPartitions(client: pg.Client): Promise<readonly FilledPartition[]> {
  const { rows } = await client.query<{ table: string; name: string; bytes: string }>(
    `SELECT parent.relname AS table, part.relname AS name, pg_total_relation_size(part.oid) AS bytes
     FROM pg_inherits JOIN pg_class AS parent ON parent.oid = inhparent JOIN pg_class AS part ON part.oid = inhrelid
     WHERE parent.relnamespace = 'journal'::regnamespace AND parent.relkind = 'p' AND parent.relname = ANY ($1)
       AND pg_relation_size(part.oid) > 0 ORDER BY part.relname`,
    [EXPENDABLE],
  )
  return rows.map(({ table, name, bytes }) => ({ table, name, bytes: Number(bytes) }))
}
