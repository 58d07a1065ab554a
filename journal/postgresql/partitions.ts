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
