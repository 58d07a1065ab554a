import type pg from 'pg'
import { SESSION_ID } from './ended-sessions.ts'

/**
 * Minimum time in ms for which a session shows the same wait, and the same number of rows of COPY, before it is ended. A session processes the
 * barrier after each row that it has received. A result shows no progress: a session that waits at each check for its client to read counts
 * as unchanged.
 */
const UNCHANGED_MS = 1_000

/**
 * Query for the sessions of tenants that may block a statement of the administrator, with one of the pids $1, at a barrier. Since version 15, DROP
 * DATABASE waits until every process of the server has processed a barrier (PostgreSQL, procsignal.c). This wait is not a lock, so pg_locks does
 * not show it. A session does not process the barrier while it waits for data of COPY FROM STDIN, or for its client to read (postgres.c,
 * ProcessClientReadInterrupt and ProcessClientWriteInterrupt). It does in every other wait for a client. Its state may be `idle`
 * meanwhile: PostgreSQL reports that before it sends the end of a result.
 */
const HOLDERS = `
  SELECT pid, ${SESSION_ID} AS id, wait_event || ' ' || coalesce(c.tuples_processed::text, '') AS state
  FROM pg_stat_activity a LEFT JOIN pg_stat_progress_copy c USING (pid)
  WHERE backend_type = 'client backend' AND usename <> current_user
    AND (wait_event = 'ClientWrite' OR wait_event = 'ClientRead' AND c.command = 'COPY FROM')
    AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY ($1) AND wait_event = 'ProcSignalBarrier')`

interface Holder {
  readonly pid: number
  readonly id: string
  readonly state: string
}

type Run = <Row extends pg.QueryResultRow>(text: string, values: unknown[]) => Promise<Row[]>

/** Creates the check that ends sessions of tenants which keep these statements at a barrier. Call it repeatedly while statements run. */
export function createBarrierCheck(run: Run): (pids: readonly number[]) => Promise<void> {
  /** Time since which each session has shown its present state, in ms of `performance.now()`. */
  let since: ReadonlyMap<string, number> = new Map()

  return async function endHolders(pids) {
    const holders = await run<Holder>(HOLDERS, [pids])
    const now = performance.now()
    const keyOf = ({ id, state }: Holder): string => `${id} ${state}`
    since = new Map(holders.map((holder) => [keyOf(holder), since.get(keyOf(holder)) ?? now]))
    const still = holders.filter((holder) => now - (since.get(keyOf(holder)) ?? now) >= UNCHANGED_MS)
    if (still.length > 0)
      await run('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [still.map(({ pid }) => pid)])
  }
}
