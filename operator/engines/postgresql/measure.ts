import type { Measured } from '../engine.ts'
import type { Session } from './connection.ts'
import { readSizes } from './catalog.ts'

/** Counters of a database, and its sessions. Statements of the administrator run in the maintenance database, which does not count. */
const STATISTICS = `
  SELECT xact_commit + xact_rollback AS transactions, blks_hit + blks_read AS reads, blks_read AS misses, sessions.*
  FROM pg_stat_database, (
    SELECT count(*) AS connections,
      count(*) FILTER (WHERE state = 'active' AND clock_timestamp() - query_start >= interval '1 s') AS slow
    FROM pg_stat_activity WHERE datname = $1 AND usename = $1 AND backend_type = 'client backend'
  ) AS sessions WHERE datname = $1`

/** Numbers of type bigint, which the driver returns as text. */
type Row = Readonly<Record<'transactions' | 'reads' | 'misses' | 'connections' | 'slow', string>>

/** Measures a database. PostgreSQL does not count slow statements, so those that run now are returned. */
export async function measure(session: Session, name: string): Promise<Measured | undefined> {
  const [row] = await session.query<Row>(STATISTICS, [name])
  const sizeBytes = (await readSizes(session, 'all')).get(name)
  if (!row || sizeBytes === undefined) return undefined
  const [connections, transactions] = [Number(row.connections), Number(row.transactions)]
  const pages = { reads: Number(row.reads), misses: Number(row.misses) }
  return { connections, sizeBytes, transactions, pages, slow: { running: Number(row.slow) } }
}
