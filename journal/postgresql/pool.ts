import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { connectionConfig, ignore, type JournalLogin, type LoginSource } from './client.ts'

type Row = Readonly<Record<string, unknown>>

/** Runs one statement. @throws MooringError `journal_away` when the journal is unavailable; else what the driver throws */
export type Ask = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>

export interface JournalPool extends AsyncDisposable {
  readonly ask: Ask
}

const CONNECTIONS = 4
/** Maximum time of a statement in milliseconds; then the server cancels it. A search of millions of rows takes some seconds. */
const STATEMENT_MS = 15_000
/**
 * Time in milliseconds during which calls fail at once after a failure, so that callers do not queue up behind a journal that is
 * unavailable.
 */
const AWAY_MS = 1_000
/** Maximum age of a login that was read, in milliseconds. */
const LOGIN_MS = 5_000

/** Creates a pool of connections to the journal, opened on demand. A changed login closes those of the old one. */
export function createJournalPool(login: LoginSource): JournalPool {
  let current: { readonly key: string; readonly pool: pg.Pool } | undefined
  let readAt = -Infinity
  let away: { readonly until: number; readonly error: unknown } | undefined

  function poolFor(of: JournalLogin): pg.Pool {
    const key = JSON.stringify(of)
    if (current?.key === key) return current.pool
    // Running statements of the old pool end by themselves.
    void current?.pool.end()
    const pool = new pg.Pool({
      ...connectionConfig(of),
      connectionTimeoutMillis: 2_000,
      max: CONNECTIONS,
      statement_timeout: STATEMENT_MS,
      query_timeout: STATEMENT_MS + 5_000,
      idleTimeoutMillis: 30_000,
      application_name: 'mooring-journal-reader',
    })
    // An idle connection broke, and has left the pool. Without this listener the error would end the process.
    pool.on('error', ignore)
    current = { key, pool }
    return pool
  }

  async function currentPool(): Promise<pg.Pool> {
    if (current && performance.now() - readAt < LOGIN_MS) return current.pool
    const of = await login()
    readAt = performance.now()
    return poolFor(of)
  }

  async function ask(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    if (away && performance.now() < away.until) throw awayError(away.error)
    try {
      const { rows } = await (await currentPool()).query<Row>(text, [...values])
      away = undefined
      return rows
    } catch (error) {
      if (isWrongStatement(error)) throw error
      readAt = -Infinity
      if (!isSlow(error)) away = { until: performance.now() + AWAY_MS, error }
      throw awayError(error)
    }
  }

  return {
    ask,
    async [Symbol.asyncDispose]() {
      await current?.pool.end()
      current = undefined
    },
  }
}

const awayError = (cause: unknown) => new MooringError('journal_away', 'journal is unavailable', { cause })

const sqlState = (error: unknown): string | undefined => (error instanceof pg.DatabaseError ? error.code : undefined)
/** Whether the server cancelled the statement for its time limit: other statements may be faster. */
const isSlow = (error: unknown): boolean => sqlState(error) === '57014'

/** Whether a statement is wrong. False for a journal that is unavailable, or that has no schema yet. */
function isWrongStatement(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && /^(2[0-9]|42)/.test(state) && !NO_SCHEMA.has(state) && !state.startsWith('28')
}

/** SQLSTATEs of a journal without its schema: insufficient_privilege, undefined_table, undefined_function. */
const NO_SCHEMA = new Set(['42501', '42P01', '42883'])
