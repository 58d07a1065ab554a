import { HOUR_MS } from '../../shared/database-usage.ts'
import type { DatabaseSync } from 'node:sqlite'
import {
  type DatabaseRecords,
  type DatabaseSample,
  hourOf,
  type KeptSample,
  type UsageRecord,
  type UsageSum,
} from '../databases.ts'
import type { DatabaseQuestion, DatabaseReply, WriterReply, WriterRequest } from './messages.ts'
import type { Read } from './outbox.ts'

/** Tables of dedicated databases (journal/databases.ts), which layout 8 adds. `hour` is counted from the epoch; `since` and `until` are milliseconds. */
export const DATABASE_TABLES = `
  CREATE TABLE IF NOT EXISTS usage (
    database TEXT NOT NULL, item TEXT NOT NULL, hour INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL,
    millionths INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (database, since, item)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS usage_by_database ON usage (database, hour);
  CREATE INDEX IF NOT EXISTS usage_by_namespace ON usage (namespace, hour);
  CREATE INDEX IF NOT EXISTS usage_by_hour ON usage (hour);
  CREATE TABLE IF NOT EXISTS samples (
    database TEXT NOT NULL, at INTEGER NOT NULL, connections REAL NOT NULL, size_bytes INTEGER NOT NULL, transactions REAL, cache_hits REAL,
    slow REAL, backup_age REAL, PRIMARY KEY (database, at)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS samples_by_time ON samples (at);
`

export interface DatabaseKeeper {
  /** Keeps records, within a transaction. A record that exists already stays unchanged. */
  readonly keep: (records: { readonly usage: readonly UsageRecord[]; readonly samples: readonly KeptSample[] }) => void
}

/** Creates the part of the writing thread that keeps the records of dedicated databases. */
export function createDatabaseKeeper(db: DatabaseSync): DatabaseKeeper {
  const addUsage = db.prepare(`
    INSERT OR IGNORE INTO usage (database, item, hour, namespace, name, unit, millionths, since, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const addSample = db.prepare(`
    INSERT OR IGNORE INTO samples (database, at, connections, size_bytes, transactions, cache_hits, slow, backup_age) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)

  function keepUsage({ database, item, namespace, name, unit, millionths, from, to }: UsageRecord): void {
    addUsage.run(database, item, hourOf(from), namespace, name, unit, millionths, from, to)
  }

  function keepSample({ database, at, connections, sizeBytes, ...rest }: KeptSample): void {
    const { transactionsPerSecond, cacheHitRatio, slowStatements, backupAgeSeconds } = rest
    const values = [transactionsPerSecond, cacheHitRatio, slowStatements, backupAgeSeconds]
    addSample.run(database, at, connections, sizeBytes, ...values)
  }

  return {
    keep({ usage, samples }) {
      usage.forEach(keepUsage)
      samples.forEach(keepSample)
    },
  }
}

/** Creates the part of the reading thread that reads the records of dedicated databases. */
export function createDatabaseReader(db: DatabaseSync): (question: DatabaseQuestion) => DatabaseReply {
  const usage = (by: 'database' | 'namespace') =>
    db.prepare(`
      SELECT database, namespace, name, item, unit, min(max(since, ?2)) AS "from", max(min(until, ?3)) AS "to",
        sum(CAST(round(1.0 * millionths * (min(until, ?3) - max(since, ?2)) / (until - since)) AS INTEGER)) AS millionths
      FROM usage WHERE ${by} = ?1 AND hour >= ?4 AND hour <= ?5 AND until > ?2 AND since < ?3
      GROUP BY database, namespace, name, item, unit ORDER BY name, database, item`)
  const [ofDatabase, ofNamespace] = [usage('database'), usage('namespace')]
  const last = db.prepare('SELECT max(hour) AS hour FROM usage WHERE database = ?')
  const samples = db.prepare(`
    SELECT min(at) / CAST(?4 AS INTEGER) * CAST(?4 AS INTEGER) AS at, avg(connections) AS connections, max(size_bytes) AS sizeBytes,
      avg(transactions) AS transactionsPerSecond, avg(cache_hits) AS cacheHitRatio, sum(slow) AS slowStatements,
      avg(backup_age) AS backupAgeSeconds
    FROM samples WHERE database = ?1 AND at >= ?2 AND at < ?3 GROUP BY at / CAST(?4 AS INTEGER) ORDER BY 1`)

  function endOf(database: string): readonly (readonly [string, number])[] {
    const hour = last.get(database)?.hour
    return typeof hour === 'number' ? [[database, (hour + 1) * HOUR_MS]] : []
  }

  return (question) => {
    switch (question.type) {
      case 'usage': {
        const { from, to, ...by } = question.filter
        const [statement, value] = 'database' in by ? [ofDatabase, by.database] : [ofNamespace, by.namespace]
        return { type: 'usage', sums: plain(statement.all(value, from, to, hourOf(from), hourOf(to))) as unknown as UsageSum[] }
      }
      case 'usageUntil':
        return { type: 'usageUntil', ends: new Map(question.databases.flatMap(endOf)) }
      case 'samples': {
        const { database, span, stepMs } = question
        return {
          type: 'samples',
          samples: plain(samples.all(database, span.from, span.to, stepMs)) as unknown as DatabaseSample[],
        }
      }
    }
  }
}

/** Rows have no prototype, and another thread would receive them so. */
const plain = (rows: readonly object[]): readonly object[] => rows.map((row) => ({ ...row }))

export interface DatabaseRecordsDeps {
  /** Asks the writing thread. */
  readonly ask: (request: WriterRequest) => Promise<WriterReply>
  readonly read: Read
  /** Resolves when all that was written before is on disk. */
  readonly sync: () => Promise<void>
}

/** Creates the records of dedicated databases, which ask the threads. */
export function createDatabaseRecords({ ask, read, sync }: DatabaseRecordsDeps): DatabaseRecords {
  return {
    async keepUsage(records) {
      if (records.length === 0) return
      await ask({ type: 'keepDatabases', usage: records, samples: [] })
      await sync()
    },
    usage: async (filter) => (await read('usage', { type: 'databases', question: { type: 'usage', filter } })).sums,
    usageUntil: async (databases) =>
      (await read('usageUntil', { type: 'databases', question: { type: 'usageUntil', databases } })).ends,
    async keepSamples(samples) {
      if (samples.length > 0) await ask({ type: 'keepDatabases', usage: [], samples })
    },
    samples: async (database, span, stepMs = 1) =>
      (await read('samples', { type: 'databases', question: { type: 'samples', database, span, stepMs } })).samples,
  }
}
