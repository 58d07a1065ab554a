import pg from 'pg'
import type { AdminTarget } from '../engine.ts'

/** Runs text as the admin in the maintenance database. One text may hold several statements: they are one transaction. */
export interface Session {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

export interface Connection extends Session, AsyncDisposable {
  /** Runs `work` in another database on a connection of its own, and returns once the server has ended that session. */
  inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T>
  /** For statements that may take long: copies and drops of databases. */
  readonly patient: Session
}

export interface Timeouts {
  readonly connectMs: number
  readonly statementMs: number
  /** Of a statement that reads or writes whole databases. */
  readonly longStatementMs: number
}

export const TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 30_000, longStatementMs: 600_000 }

const MAINTENANCE = 'postgres'

/** How one login dials, whoever logs in. */
export function dialling({ host, port, ca }: Omit<AdminTarget, 'user' | 'password'>, timeouts: Timeouts): pg.ClientConfig {
  return {
    host,
    port,
    ssl: ca === undefined ? false : { ca },
    connectionTimeoutMillis: timeouts.connectMs,
    keepAlive: true,
    application_name: 'mooring',
  }
}

/**
 * The admin's few connections to one server. The first call dials; a lost connection is replaced by the next call.
 * Throws what the driver throws.
 */
export function connect(target: AdminTarget, timeouts: Timeouts = TIMEOUTS): Connection {
  const config = (statementMs: number): pg.ClientConfig => ({
    ...dialling(target, timeouts),
    user: target.user,
    password: target.password,
    statement_timeout: statementMs,
    // The server gives up first; this is for one that does not answer any more.
    query_timeout: statementMs + 5_000,
    // Tenants own schemas: a function or operator of theirs must never be what the admin's statement means.
    options: '-c search_path=pg_catalog',
  })
  const poolOf = (statementMs: number, size: { min: number; max: number }): pg.Pool => {
    const pool = new pg.Pool({ ...config(statementMs), database: MAINTENANCE, ...size, idleTimeoutMillis: 30_000 })
    // An idle connection broke, and is out of the pool by now. Without a listener it would end the process.
    return pool.on('error', ignore)
  }
  const quick = poolOf(timeouts.statementMs, { min: 1, max: 2 })
  // Copies wait for checkpoints and disks, and share them: four at once make twice as many databases a second as two.
  const patient = poolOf(timeouts.longStatementMs, { min: 0, max: 4 })

  async function inside<T>(database: string, work: (session: Session) => Promise<T>): Promise<T> {
    const client = new pg.Client({ ...config(timeouts.longStatementMs), database })
    client.on('error', ignore)
    try {
      await client.connect()
      return await work(sessionOf(client))
    } finally {
      await client.end()
    }
  }

  let ended: Promise<unknown> | undefined
  return {
    ...sessionOf(quick),
    patient: sessionOf(patient),
    inside,
    async [Symbol.asyncDispose]() {
      ended ??= Promise.all([quick.end(), patient.end()])
      await ended
    },
  }
}

/** Whoever waits for a connection is told of its end by the call that waits. */
export function ignore(): void {
  // Nothing to do: see above.
}

function sessionOf(client: pg.Pool | pg.Client): Session {
  return {
    async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text, values)
      // Text of several statements has a list of results, which the driver's types do not say; nobody reads rows of those.
      return 'rows' in result ? result.rows : []
    },
  }
}

export const quoteName = (name: string): string => pg.escapeIdentifier(name)
export const quoteText = (text: string): string => pg.escapeLiteral(text)
