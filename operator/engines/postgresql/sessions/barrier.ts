import type pg from 'pg'
import { SESSION_ID } from './ended-sessions.ts'

/**
 * Time in ms for which a session shows the same wait and progress before it is ended. A client that sends or reads slowly goes on between
 * two checks, and its session then lets the barrier pass.
 */
const UNCHANGED_MS = 1_000

/**
 * Query for the sessions of tenants that may keep a statement of the administrator, with one of the pids $1, at a barrier. In 15, DROP DATABASE
 * waits until every process of the server has accepted a barrier (PostgreSQL, procsignal.c), which is no lock. A session does not accept it
 * while it waits for data of COPY FROM STDIN, or for its client to read a result (postgres.c, ProcessClientReadInterrupt). Each other wait for
 * a client accepts it.
 */
const HOLDERS = `
  SELECT pid, ${SESSION_ID} AS id, wait_event || ' ' || coalesce(c.bytes_processed || '/' || c.tuples_processed, '') AS state
  FROM pg_stat_activity a LEFT JOIN pg_stat_progress_copy c USING (pid)
  WHERE backend_type = 'client backend' AND usename <> current_user AND state = 'active'
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
