import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { jsonArray, joinColumns, type RequestColumns, requestColumns } from './record-format.ts'
import type { Shipment } from '../outbox.ts'
import { createClient, closeClient, ignore, type JournalLogin, type LoginSource } from './client.ts'

/** Reason why a shipment was not kept. `again` says that a later attempt may succeed. */
export class KeepError extends MooringError {
  readonly again: boolean

  constructor(again: boolean, options: ErrorOptions) {
    super(
      again ? 'unavailable' : 'invalid_record',
      again ? 'journal could not keep the records; retrying' : 'journal rejected invalid records',
      options,
    )
    this.again = again
  }
}

/** Connection that writes shipments to PostgreSQL. It is replaced when it breaks. Calls run one at a time. */
export interface Keeper extends AsyncDisposable {
  /**
   * Keeps the new records; after an error a part of them may be kept. Returns the number of records that can never be kept:
   * invalid ones, and those of a day past its retention or too far in the future.
   * @throws KeepError
   */
  keep(shipment: Shipment): Promise<{ readonly refused: number }>
  /**
   * Returns the identity of the journal; a new database has another one. Undefined while the journal has no schema, or rejects
   * this role.
   * @throws what the driver throws while the journal is unavailable
   */
  identity(): Promise<string | undefined>
}

/** Maximum time of a statement, in milliseconds; then the connection counts as broken. */
const STATEMENT_MS = 30_000
/** Maximum time of a check of the identity, in milliseconds. */
const IDENTITY_MS = 5_000
/** Maximum age of a login that was read, in milliseconds. */
const LOGIN_MS = 5_000
/** Statement that keeps requests; its values are columns of record-format.ts. */
export const KEEP_REQUESTS = {
  name: 'keep-requests',
  text: `SELECT journal.keep_requests($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS refused`,
}
const KEEP_CONNECTIONS = 'SELECT journal.keep_connections($1) AS refused'
const IDENTITY = { text: 'SELECT journal.identity() AS id', query_timeout: IDENTITY_MS }
const KEEP_AUDIT = 'SELECT journal.keep_audit($1) AS refused'

/**
 * Creates the connection, which is opened at the first call.
 * @param loginMs milliseconds after which the login is read again, for a journal that has moved
 */
export function createKeeper(login: LoginSource, loginMs = LOGIN_MS): Keeper {
  let client: pg.Client | undefined
  let currentLogin: string | undefined
  let readAt = -Infinity
  let last: Promise<unknown> = Promise.resolve()
  let isClosed = false

  /**
   * Runs calls one at a time: a call that finds a changed login closes the connection, which must not interrupt another call's
   * statement.
   */
  function inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = last.then(act)
    last = turn.catch(ignore)
    return turn
  }

  async function current(): Promise<pg.Client> {
    if (isClosed) throw closedError()
    if (client && performance.now() - readAt < loginMs) return client
    const now = await login()
    readAt = performance.now()
    if (JSON.stringify(now) !== currentLogin) disconnect(client)
    return client ?? open(now)
  }

  async function open(credentials: JournalLogin): Promise<pg.Client> {
    const opened = createClient(credentials, { application_name: 'mooring-journal', query_timeout: STATEMENT_MS })
    opened.on('error', () => disconnect(opened))
    try {
      await opened.connect()
      if (isClosed) throw closedError()
    } catch (error) {
      void closeClient(opened)
      throw error
    }
    client = opened
    currentLogin = JSON.stringify(credentials)
    return opened
  }

  function disconnect(broken: pg.Client | undefined): void {
    if (client === broken) client = undefined
    if (broken) void closeClient(broken)
  }

  async function call(query: { readonly name?: string; readonly text: string }, values: readonly string[]): Promise<number> {
    const opened = await current()
    const { rows } = await opened.query<{ refused: number }>({ ...query, values: [...values] })
    return rows[0]?.refused ?? 0
  }

  async function keepAll({ connections, audit, requests }: Shipment): Promise<number> {
    let refused = 0
    if (connections.length > 0) refused += await call({ text: KEEP_CONNECTIONS }, [jsonArray(connections)])
    if (audit.length > 0) refused += await call({ text: KEEP_AUDIT }, [jsonArray(audit)])
    const parts: RequestColumns[] = []
    for (const batch of requests) {
      parts.push(requestColumns(batch))
      // Gives other tasks of this thread a turn.
      await setImmediate()
    }
    if (parts.length > 0) refused += await call(KEEP_REQUESTS, joinColumns(parts))
    return parts.reduce((sum, part) => sum + part.refused, refused)
  }

  async function keep(shipment: Shipment): Promise<{ readonly refused: number }> {
    try {
      return { refused: await keepAll(shipment) }
    } catch (error) {
      if (isPermanent(error)) throw new KeepError(false, { cause: error })
      disconnect(client)
      throw new KeepError(true, { cause: error })
    }
  }

  async function identity(): Promise<string | undefined> {
    try {
      const opened = await current()
      const { rows } = await opened.query<{ id: string }>(IDENTITY)
      return rows[0]?.id
    } catch (error) {
      // The operator has not created the schema yet, or an older operator has.
      if (error instanceof pg.DatabaseError) return undefined
      // A connection whose server vanished silently would stay in use for ever.
      disconnect(client)
      throw error
    }
  }

  return {
    keep: (shipment) => inTurn(() => keep(shipment)),
    identity: () => inTurn(identity),
    async [Symbol.asyncDispose]() {
      isClosed = true
      // Ends a running statement too. A connection that is being opened is closed once it is open.
      if (client) await closeClient(client)
      await last
    },
  }
}

const closedError = () => new MooringError('unavailable', 'journal is closing')

/** SQLSTATE check_violation: the table has no partition for the record's day yet. The operator creates it. */
const NO_PARTITION = '23514'

/**
 * Whether PostgreSQL can never keep this data: SQLSTATE classes 22 and 23 (PostgreSQL manual, appendix A), or an invalid record.
 */
function isPermanent(error: unknown): boolean {
  if (error instanceof MooringError && error.code === 'invalid_record') return true
  const code = error instanceof pg.DatabaseError ? error.code : undefined
  return code !== undefined && code !== NO_PARTITION && /^2[23]/.test(code)
}
