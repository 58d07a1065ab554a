import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { dialling, ignore, type JournalLogin, type LoginSource } from './login.ts'

type Row = Readonly<Record<string, unknown>>

/** Runs one statement. @throws MooringError `journal_away` when the journal does not answer now; else what the driver throws */
export type Ask = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>

export interface JournalPool extends AsyncDisposable {
  readonly ask: Ask
}

const CONNECTIONS = 4
/** The server gives a statement up after this; a search of millions of rows takes some seconds. */
const STATEMENT_MS = 15_000
/** After a failure others are told at once, so that callers do not queue up behind a journal that is away. */
const AWAY_MS = 1_000
/** How long a login that was read counts as current. */
const LOGIN_MS = 5_000

/** A few connections to the journal, dialled when asked for. When its login changes, those of the old one are given up. */
export function createJournalPool(login: LoginSource): JournalPool {
  let current: { readonly key: string; readonly pool: pg.Pool } | undefined
  let readAt = -Infinity
  let away: { readonly until: number; readonly error: unknown } | undefined

  function poolFor(of: JournalLogin): pg.Pool {
    const key = JSON.stringify(of)
    if (current?.key === key) return current.pool
    // What is under way there ends by itself.
    void current?.pool.end()
    const pool = new pg.Pool({
      ...dialling(of),
      connectionTimeoutMillis: 2_000,
      max: CONNECTIONS,
      statement_timeout: STATEMENT_MS,
      query_timeout: STATEMENT_MS + 5_000,
      idleTimeoutMillis: 30_000,
      application_name: 'mooring-journal-reader',
    })
    // An idle connection broke, and is out of the pool by now. Without a listener it would end the process.
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
      if (isMistake(error)) throw error
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

const awayError = (cause: unknown) => new MooringError('journal_away', 'the journal cannot be read now', { cause })

const sqlState = (error: unknown): string | undefined => (error instanceof pg.DatabaseError ? error.code : undefined)
/** The statement took too long: others may not. */
const isSlow = (error: unknown): boolean => sqlState(error) === '57014'

/** A statement that is wrong, rather than a journal that is away or that the operator has not laid out yet. */
function isMistake(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && /^(2[0-9]|42)/.test(state) && !NOT_LAID_OUT.has(state) && !state.startsWith('28')
}

/** insufficient_privilege, undefined_table, undefined_function */
const NOT_LAID_OUT = new Set(['42501', '42P01', '42883'])
