import { z } from 'zod'
import type { DatabaseSample } from '../../../journal/databases.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { DATABASE_PATH, type DatabaseDeps, DatabaseParams } from '../database-deps.ts'
import { requireRecords } from './usage.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Length of each window, and of the intervals whose samples are merged: at most 169 points. */
const WINDOWS = {
  '1h': { lengthMs: HOUR_MS, stepMs: MINUTE_MS },
  '24h': { lengthMs: DAY_MS, stepMs: 10 * MINUTE_MS },
  '7d': { lengthMs: 7 * DAY_MS, stepMs: HOUR_MS },
} as const
/** Maximum age of the latest sample. */
const LATEST_MS = 2 * MINUTE_MS

const Sample = z
  .object({
    at: z.iso.datetime().describe('Time of the sample, or begin of the interval.'),
    connections: z.number().min(0),
    sizeBytes: z.number().min(0),
    transactionsPerSecond: z.number().min(0).nullable(),
    cacheHitRatio: z.number().min(0).max(1).nullable().describe('Share of page reads that the cache served.'),
    slowStatements: z.number().min(0).nullable().describe('Statements of at least one second.'),
    backupAgeSeconds: z.number().min(0).nullable().describe('Null without backups.'),
  })
  .meta({ id: 'DatabaseSample' })

/** Measured values of a database over a window (docs/api.md, "Metrics"). */
export const Metrics = z
  .object({
    monitoring: z.boolean().describe('Whether the database is measured now. Without it the series ends.'),
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    latest: Sample.nullable().describe('Last sample; null when none is younger than two minutes.'),
    series: z
      .array(Sample)
      .describe(
        'Oldest first: one item per minute (1h), 10 minutes (24h) or hour (7d). Intervals without a sample are left out.',
      ),
  })
  .meta({ id: 'DatabaseMetrics' })

const MetricsQuery = z.object({
  window: z.enum(['1h', '24h', '7d']).default('1h').describe('Length of the window, which ends now.'),
})

/** `GET /v1/databases/{id}/metrics`: measured values of a database, for charts. */
export function getMetrics({ find, now, ...deps }: DatabaseDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${DATABASE_PATH}/metrics`,
    on: ['dedicated'],
    id: 'getDatabaseMetrics',
    summary: 'Get the measured values of a database with the add-on `monitoring`.',
    description: 'Without the add-on `monitoring` is false, and the series has what was measured before.',
    params: DatabaseParams,
    query: MetricsQuery,
    replies: { 200: z.object({ metrics: Metrics }) },
    async handle({ principal, params, query }) {
      const { metadata, spec } = await find(principal, params.id)
      const records = requireRecords(deps.records)
      const { lengthMs, stepMs } = WINDOWS[query.window]
      const to = now().getTime()
      const span = { from: to - lengthMs, to: to + 1 }
      const series = await records.samples(metadata.uid, span, stepMs)
      const latest = (await records.samples(metadata.uid, { ...span, from: to - LATEST_MS })).at(-1)
      const metrics = {
        monitoring: spec.monitoring,
        from: time(span.from),
        to: time(to),
        latest: latest ? view(latest) : null,
        series: series.map(view),
      }
      return { status: 200, data: { metrics } }
    },
  })
}

const time = (ms: number): string => new Date(ms).toISOString()
const view = ({ at, ...values }: DatabaseSample): z.output<typeof Sample> => ({ at: time(at), ...values })
