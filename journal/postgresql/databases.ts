import type { DatabaseRecords, DatabaseSample, UsageSum, UsageUnit } from '../databases.ts'
import { HOUR_MS } from '../../shared/database-usage.ts'
import { hourOf } from '../databases.ts'
import { type EventRow, numberOf } from '../search.ts'
import { isUuid, jsonArray } from './record-format.ts'
import type { Ask } from './pool.ts'

/**
 * Tables of dedicated databases (journal/databases.ts), which layout 7 adds. Billing systems read `usage`: `quantity` in units, `since` and `until` in
 * milliseconds, `hour` in hours since the epoch.
 */
export const DATABASE_TABLES = `
  CREATE TABLE IF NOT EXISTS usage (
    database uuid NOT NULL, item text NOT NULL, hour integer NOT NULL, namespace text NOT NULL, name text NOT NULL, unit text NOT NULL,
    quantity numeric(24, 6) NOT NULL, since bigint NOT NULL, until bigint NOT NULL, PRIMARY KEY (database, since, item)
  );
  CREATE INDEX IF NOT EXISTS usage_by_database ON usage (database, hour);
  CREATE INDEX IF NOT EXISTS usage_by_namespace ON usage (namespace, hour);
  CREATE INDEX IF NOT EXISTS usage_by_hour ON usage (hour);
  CREATE TABLE IF NOT EXISTS samples (
    database uuid NOT NULL, at bigint NOT NULL, connections double precision NOT NULL, size_bytes bigint NOT NULL, transactions double precision,
    cache_hits double precision, slow double precision, backup_age double precision, PRIMARY KEY (database, at)
  );
  CREATE INDEX IF NOT EXISTS samples_by_time ON samples (at);
`

const KEEP_USAGE = `
  INSERT INTO journal.usage (database, item, hour, namespace, name, unit, quantity, since, until)
  SELECT database, item, "from" / ${HOUR_MS}, namespace, name, unit, millionths::numeric / 1000000, "from", "to"
  FROM json_to_recordset($1::json) AS g(database uuid, item text, namespace text, name text, unit text, millionths bigint, "from" bigint, "to" bigint)
  ORDER BY database, "from", item ON CONFLICT DO NOTHING`

const USAGE = (by: 'database' | 'namespace'): string => `
  SELECT database, namespace, name, item, unit, min(greatest(since, $2)) AS since, max(least(until, $3)) AS until,
    sum(round(quantity * 1000000 * (least(until, $3) - greatest(since, $2)) / (until - since))) AS millionths
  FROM journal.usage WHERE ${by} = $1 AND hour >= $4 AND hour <= $5 AND until > $2 AND since < $3
  GROUP BY database, namespace, name, item, unit ORDER BY name, database, item`

const KEEP_SAMPLES = `
  INSERT INTO journal.samples (database, at, connections, size_bytes, transactions, cache_hits, slow, backup_age)
  SELECT database, at, connections, "sizeBytes", "transactionsPerSecond", "cacheHitRatio", "slowStatements", "backupAgeSeconds"
  FROM json_to_recordset($1::json) AS g(database uuid, at bigint, connections double precision, "sizeBytes" bigint,
    "transactionsPerSecond" double precision, "cacheHitRatio" double precision, "slowStatements" double precision, "backupAgeSeconds" double precision)
  ORDER BY database, at ON CONFLICT DO NOTHING`

const SAMPLES = `
  SELECT min(at) / $4::bigint * $4::bigint AS at, avg(connections) AS connections, max(size_bytes) AS size_bytes, avg(transactions) AS transactions,
    avg(cache_hits) AS cache_hits, sum(slow) AS slow, avg(backup_age) AS backup_age
  FROM journal.samples WHERE database = $1 AND at >= $2 AND at < $3 GROUP BY at / $4::bigint ORDER BY 1`

/** Creates the records of dedicated databases. Only the owner of the schema may write. */
export function createDatabaseRecords(ask: Ask): DatabaseRecords {
  return {
    async keepUsage(records) {
      if (records.length > 0) await ask(KEEP_USAGE, [jsonArray(records.map((record) => JSON.stringify(record)))])
    },
    async usage({ from, to, ...by }) {
      const [column, value] = 'database' in by ? (['database', by.database] as const) : (['namespace', by.namespace] as const)
      if (column === 'database' && !isUuid(value)) return []
      return (await ask(USAGE(column), [value, from, to, hourOf(from), hourOf(to)])).map(sumOf)
    },
    async usageUntil(databases) {
      const rows = await ask(
        'SELECT database, max(hour) AS hour FROM journal.usage WHERE database = ANY ($1::uuid[]) GROUP BY database',
        [databases.filter(isUuid)],
      )
      return new Map(rows.map(({ database, hour }) => [database as string, (numberOf(hour) + 1) * HOUR_MS]))
    },
    async keepSamples(samples) {
      if (samples.length > 0) await ask(KEEP_SAMPLES, [jsonArray(samples.map((sample) => JSON.stringify(sample)))])
    },
    async samples(database, { from, to }, stepMs = 1) {
      return isUuid(database) ? (await ask(SAMPLES, [database, from, to, stepMs])).map(sampleOf) : []
    },
  }
}

const sumOf = (row: EventRow): UsageSum => ({
  database: row.database as string,
  namespace: row.namespace as string,
  name: row.name as string,
  item: row.item as string,
  unit: row.unit as UsageUnit,
  millionths: numberOf(row.millionths),
  from: numberOf(row.since),
  to: numberOf(row.until),
})

const orNull = (value: unknown): number | null => (value === null || value === undefined ? null : numberOf(value))

const sampleOf = (row: EventRow): DatabaseSample => ({
  at: numberOf(row.at),
  connections: numberOf(row.connections),
  sizeBytes: numberOf(row.size_bytes),
  transactionsPerSecond: orNull(row.transactions),
  cacheHitRatio: orNull(row.cache_hits),
  slowStatements: orNull(row.slow),
  backupAgeSeconds: orNull(row.backup_age),
})
