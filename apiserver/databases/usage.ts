import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { type DatabaseRecords, USAGE_UNITS, type UsageSum } from '../../journal/databases.ts'
import { decimalOf, usageOf } from '../../shared/database-usage.ts'
import { requireOrder, SpanQuery } from '../journal/journal-schemas.ts'

/** Query of the routes of usage. */
export const UsageQuery = z.object({
  from: SpanQuery.from.describe('Begin of the span. Default: the begin of the calendar month of `to` (UTC).'),
  to: SpanQuery.to.describe('End of the span, exclusive. Default: now.'),
})

const item = {
  item: z.string().describe('Id of a billable item in `GET /v1/databases/create/metadata`.'),
  unit: z.enum(USAGE_UNITS).describe('`hour` of a plan, `GiB-hour` of storage and backups.'),
  quantity: z.string().describe('Decimal string with at most six decimals.'),
  from: z.iso.datetime().describe('Begin of the use within the span.'),
  to: z.iso.datetime().describe('End of the use within the span, exclusive.'),
}

/** Use of one billable item by a database (docs/api.md, "Usage"). */
export const UsageView = z.object(item).meta({ id: 'Usage' })

/** Use of one billable item by a database of a namespace. */
export const NamespaceUsageView = z
  .object({ database: z.object({ id: z.uuid(), name: z.string() }).describe('Database, which may be deleted.'), ...item })
  .meta({ id: 'NamespaceUsage' })

/** Half-open time range in milliseconds since the epoch. */
interface Span {
  readonly from: number
  readonly to: number
}

/** Returns the span of a query. @throws ApiError `invalid_request` */
export function spanOf({ from, to }: z.output<typeof UsageQuery>, now: Date): Span {
  const end = to ?? now.getTime()
  const last = new Date(end - 1)
  const begin = from ?? Date.UTC(last.getUTCFullYear(), last.getUTCMonth())
  requireOrder({ from: begin, to: end })
  return { from: begin, to: end }
}

export interface LiveUsage extends Span {
  /** Time now, in milliseconds since the epoch. */
  readonly now: number
  /** End of the last hour that the journal has. */
  readonly recordedUntil: number | undefined
}

/** Returns the use of a database that the operator has not recorded yet, such as that of the present hour. Pure. */
export function unrecorded({ metadata, status }: DedicatedDatabase, live: LiveUsage): readonly UsageSum[] {
  const { uid: database, namespace = '', name, deletionTimestamp } = metadata
  const span = { from: Math.max(live.from, live.recordedUntil ?? 0), to: Math.min(live.to, live.now) }
  const end = deletionTimestamp === undefined ? Infinity : Date.parse(deletionTimestamp)
  return usageOf(status?.usagePeriods ?? [], span, end).map((hour) => ({ database, namespace, name, ...hour }))
}

/** Adds up the use by database and item. Pure. */
export function sumUp(parts: readonly UsageSum[]): readonly UsageSum[] {
  const sums = new Map<string, UsageSum>()
  for (const part of parts) {
    const key = `${part.database} ${part.item}`
    const before = sums.get(key)
    sums.set(key, before ? added(before, part) : part)
  }
  return [...sums.values()].toSorted((a, b) => compare(sortKey(a), sortKey(b)))
}

const added = (a: UsageSum, b: UsageSum): UsageSum => ({
  ...a,
  millionths: a.millionths + b.millionths,
  from: Math.min(a.from, b.from),
  to: Math.max(a.to, b.to),
})

const sortKey = ({ name, database, unit, item }: UsageSum): string => [name, database, unit === 'hour' ? 0 : 1, item].join(' ')
const compare = (a: string, b: string): number => (a < b ? -1 : 1)

interface Read {
  readonly span: Span
  /** Databases that exist. */
  readonly living: readonly DedicatedDatabase[]
  readonly now: Date
}

/** Reads the use within a span: the records of the journal, and what is not recorded yet of the databases that exist. */
export async function readUsage(
  records: Pick<DatabaseRecords, 'usage' | 'usageUntil'>,
  by: { readonly database: string } | { readonly namespace: string },
  { span, living, now }: Read,
): Promise<readonly UsageSum[]> {
  const ids = living.map(({ metadata }) => metadata.uid)
  for (;;) {
    const recorded = await records.usageUntil(ids)
    const kept = await records.usage({ ...by, ...span })
    // The operator, which records once an hour, may have recorded an hour between the two answers. It would count twice.
    if (!isDeepStrictEqual(recorded, await records.usageUntil(ids))) continue
    const fresh = living.flatMap((database) =>
      unrecorded(database, { ...span, now: now.getTime(), recordedUntil: recorded.get(database.metadata.uid) }),
    )
    return sumUp([...kept, ...fresh])
  }
}

const time = (ms: number): string => new Date(ms).toISOString()

export function usageView({ item, unit, millionths, from, to }: UsageSum): z.output<typeof UsageView> {
  return { item, unit, quantity: decimalOf(millionths), from: time(from), to: time(to) }
}

export function namespaceUsageView(sum: UsageSum): z.output<typeof NamespaceUsageView> {
  return { database: { id: sum.database, name: sum.name }, ...usageView(sum) }
}
