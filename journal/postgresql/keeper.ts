import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { jsonArray, joinColumns, type RequestColumns, requestColumns } from './columns.ts'
import type { Shipment } from '../outbox.ts'
import { clientOf, endOf } from './client.ts'
import { ignore, type JournalLogin, type LoginSource } from './login.ts'

/** Why a shipment was not kept. `again`: the same may work later. */
export class KeepError extends MooringError {
  readonly again: boolean

  constructor(again: boolean, options: ErrorOptions) {
    super(again ? 'unavailable' : 'invalid_record', 'the journal did not keep what it was given', options)
    this.again = again
  }
}

/** Takes shipments to PostgreSQL on one connection, which is replaced when it breaks. What it is asked takes turns. */
export interface Keeper extends AsyncDisposable {
  /**
   * Keeps what is not there yet; after an error a part may be kept. Returns how many records are never kept: no records, or of a day that is
   * past its retention or far from come. @throws KeepError
   */
  keep(shipment: Shipment): Promise<{ readonly refused: number }>
  /** Which journal it is: one that was laid out anew is another. Undefined while it is not laid out, or turns us away. Throws what the driver throws while it is away. */
  identity(): Promise<string | undefined>
}

/** After this a server that does not answer counts as gone. */
const ANSWER_MS = 30_000
/** The same where there is nothing to be done but to look. */
const LOOK_MS = 5_000
/** How long a login that was read counts as current. */
const LOGIN_MS = 5_000
const KEEP_REQUESTS = {
  name: 'keep-requests',
  text: `SELECT journal.keep_requests($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS refused`,
}
const KEEP_CONNECTIONS = 'SELECT journal.keep_connections($1) AS refused'
const IDENTITY = { text: 'SELECT journal.identity() AS id', query_timeout: LOOK_MS }
const KEEP_AUDIT = 'SELECT journal.keep_audit($1) AS refused'

/** @param loginMs milliseconds after which the login is looked at again: a journal that has moved is written where it is now */
export function createKeeper(login: LoginSource, loginMs = LOGIN_MS): Keeper {
  let client: pg.Client | undefined
  let dialledBy: string | undefined
  let readAt = -Infinity
  let last: Promise<unknown> = Promise.resolve()
  let isClosed = false

  /** One after the other: who finds that the login has changed hangs up, and must not do so amid another's statement. */
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
    if (JSON.stringify(now) !== dialledBy) hangUp(client)
    return client ?? dial(now)
  }

  async function dial(by: JournalLogin): Promise<pg.Client> {
    const dialled = clientOf(by, { application_name: 'mooring-journal', query_timeout: ANSWER_MS })
    dialled.on('error', () => hangUp(dialled))
    try {
      await dialled.connect()
      if (isClosed) throw closedError()
    } catch (error) {
      void endOf(dialled)
      throw error
    }
    client = dialled
    dialledBy = JSON.stringify(by)
    return dialled
  }

  function hangUp(broken: pg.Client | undefined): void {
    if (client === broken) client = undefined
    if (broken) void endOf(broken)
  }

  async function call(query: { readonly name?: string; readonly text: string }, values: readonly string[]): Promise<number> {
    const dialled = await current()
    const { rows } = await dialled.query<{ refused: number }>({ ...query, values: [...values] })
    return rows[0]?.refused ?? 0
  }

  async function keepAll({ connections, audit, requests }: Shipment): Promise<number> {
    let refused = 0
    if (connections.length > 0) refused += await call({ text: KEEP_CONNECTIONS }, [jsonArray(connections)])
    if (audit.length > 0) refused += await call({ text: KEEP_AUDIT }, [jsonArray(audit)])
    const parts: RequestColumns[] = []
    for (const batch of requests) {
      parts.push(requestColumns(batch))
      // Whoever shares this thread gets his turn.
      await setImmediate()
    }
    if (parts.length > 0) refused += await call(KEEP_REQUESTS, joinColumns(parts))
    return parts.reduce((sum, part) => sum + part.refused, refused)
  }

  async function keep(shipment: Shipment): Promise<{ readonly refused: number }> {
    try {
      return { refused: await keepAll(shipment) }
    } catch (error) {
      if (isNever(error)) throw new KeepError(false, { cause: error })
      hangUp(client)
      throw new KeepError(true, { cause: error })
    }
  }

  async function identity(): Promise<string | undefined> {
    try {
      const dialled = await current()
      const { rows } = await dialled.query<{ id: string }>(IDENTITY)
      return rows[0]?.id
    } catch (error) {
      // The operator has not laid it out yet, or an earlier version of it has.
      if (error instanceof pg.DatabaseError) return undefined
      // One whose server was lost without a word would be asked for ever.
      hangUp(client)
      throw error
    }
  }

  return {
    keep: (shipment) => inTurn(() => keep(shipment)),
    identity: () => inTurn(identity),
    async [Symbol.asyncDispose]() {
      isClosed = true
      // Ends what is under way on it; one that is being dialled is ended once it is there.
      if (client) await endOf(client)
      await last
    },
  }
}

const closedError = () => new MooringError('unavailable', 'the journal is being closed')

/** No piece of the table is there for its day yet: the operator makes one. */
const NO_PIECE = '23514'

/** Data that PostgreSQL never takes (PostgreSQL, appendix A, classes 22 and 23), or that is none. */
function isNever(error: unknown): boolean {
  if (error instanceof MooringError && error.code === 'invalid_record') return true
  const code = error instanceof pg.DatabaseError ? error.code : undefined
  return code !== undefined && code !== NO_PIECE && /^2[23]/.test(code)
}
