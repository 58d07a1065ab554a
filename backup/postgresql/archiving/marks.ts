import type pg from 'pg'
import { MooringError } from '../../../shared/errors.ts'
import { isQuietSince, parseSnapshot, type Snapshot } from './quiet.ts'

/**
 * A commit that the agent writes into the log, and after which it closes the segment. When the segment is in the repository, every commit that
 * was acknowledged before the mark is there, too, and recovery to the mark's time finds a commit to stop at.
 */
export interface Mark {
  /** Time before the commit, in ms by the server's clock. */
  readonly at: number
  /** Segment that has the commit, or a later one. */
  readonly file: string
  readonly snapshot: Snapshot
  readonly transaction: bigint
}

/** Maximum time of a statement. Beyond it the server counts as unreachable: it is stopped, or its disk hangs. */
const STATEMENT_MS = 30_000

const timed = (text: string): pg.QueryConfig & { readonly query_timeout: number } => ({ text, query_timeout: STATEMENT_MS })

/** Writes a mark, and closes the segment. */
export async function writeMark(client: pg.Client): Promise<Mark> {
  const at = await timeOf(client)
  await client.query(timed('BEGIN'))
  const { rows } = await client.query<{ snapshot: string; transaction: string }>(
    timed(
      `SELECT pg_current_snapshot()::text AS snapshot, pg_current_xact_id()::text AS transaction,
      pg_logical_emit_message(true, 'mooring', 'mark')`,
    ),
  )
  await client.query(timed('COMMIT'))
  const { rows: files } = await client.query<{ file: string }>(timed('SELECT pg_walfile_name(pg_switch_wal()) AS file'))
  const [row] = rows
  const [closed] = files
  const snapshot = parseSnapshot(row?.snapshot ?? '')
  if (!row || !closed || !snapshot) throw new MooringError('invalid_mark', 'the server reported no position for a mark')
  return { at, file: closed.file, snapshot, transaction: BigInt(row.transaction) }
}

export interface Observation {
  /** Time of the server in ms, before the rest was read. */
  readonly at: number
  /** Whether nothing was committed since the mark. */
  readonly quiet: boolean
}

export async function observeSince(client: pg.Client, mark: Mark): Promise<Observation> {
  const at = await timeOf(client)
  const { rows } = await client.query<{ snapshot: string }>(timed('SELECT pg_current_snapshot()::text AS snapshot'))
  const now = parseSnapshot(rows[0]?.snapshot ?? '')
  return { at, quiet: now !== undefined && isQuietSince(mark.snapshot, mark.transaction, now) }
}

/** The driver cuts microseconds off; one millisecond less is before any commit that follows. */
async function timeOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ at: Date }>(timed('SELECT clock_timestamp() AS at'))
  const [row] = rows
  if (!row) throw new MooringError('invalid_mark', 'the server reported no time')
  return row.at.getTime() - 1
}
