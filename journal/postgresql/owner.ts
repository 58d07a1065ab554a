import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { CALLABLE, FUNCTIONS } from './functions.ts'
import { clientOf, endOf } from './client.ts'
import { ignore, type LoginSource } from './login.ts'
import { makeRoom } from './make-room.ts'
import { piecesOver, piecesWanted } from './partitions.ts'
import { runAll } from './run-all.ts'
import { EVENT_DAYS, REQUEST_DAYS } from '../retention-days.ts'
import { BACKEND_TIMES, CUTS, GENERATIONS, HOSTNAMES, REFUSALS, TABLES } from './tables.ts'

/** Layout of the schema; one of a newer Mooring is refused rather than misread. Each step makes the next out of the one before. */
const STEPS: readonly string[] = [TABLES, GENERATIONS, REFUSALS, HOSTNAMES, BACKEND_TIMES]
/** Two operators take turns; the number is the journal's own ("moorjour"). */
const LOCK = 0x6d_6f_6f_72_6a
const DAY_MS = 86_400_000
/** Taking a piece away waits for who reads, and holds up who comes next: no longer than this. */
const LOCK_MS = 2_000

export interface JournalRoles {
  readonly edge: string
  readonly reader: string
}

export interface JournalOwnerDeps {
  /** Of whoever owns the schema, or may make it. */
  readonly login: LoginSource
}

/** What the operator does to the journal in PostgreSQL. Each may run at any time, again, and in several processes at once. */
export interface JournalOwner {
  /**
   * Makes the schema what this version wants, and lets the roles in, which must be there; without roles only the owner may use it.
   * @throws MooringError `newer_layout`; what the driver throws
   */
  migrate(roles: JournalRoles | undefined): Promise<void>
  /**
   * Makes the pieces of the days to come and drops what is past its retention. After `migrate`. Does all that it can; throws then what the
   * driver threw, of a piece that somebody reads for one, or an AggregateError of that.
   * @param at ms since the epoch; the database's own time when absent, by which it is judged what may be kept: the clock of a process that
   *   is some days ahead would have all requests dropped
   */
  sweep(at?: number): Promise<void>
  /**
   * Removes the oldest requests, a day at a time, or the oldest refused logins, three days at a time, whichever take more room, until the
   * database has at most `bytes`: a full disk would stop all that is to be kept for longer. Returns the names of the tables that were
   * emptied. After `migrate`. Throws what the driver throws.
   */
  makeRoom(bytes: number): Promise<readonly string[]>
}

export function createJournalOwner({ login }: JournalOwnerDeps): JournalOwner {
  async function inSession<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = clientOf(await login(), { application_name: 'mooring-journal-owner', query_timeout: 300_000 })
    // A connection that breaks is told of by the statement that waits.
    client.on('error', ignore)
    try {
      await client.connect()
      await client.query(`SET search_path = journal, pg_catalog; SET lock_timeout = ${LOCK_MS}`)
      return await work(client)
    } finally {
      await endOf(client)
    }
  }

  return {
    migrate: (roles) => inSession((client) => inTransaction(client, () => migrate(client, roles))),
    sweep: (at) =>
      inSession(async (client) => {
        const now = at ?? (await timeOf(client))
        const today = Math.floor(now / DAY_MS)
        await runAll([
          () => inTransaction(client, () => makePieces(client, today)),
          () => dropPieces(client, today),
          () => removeRows(client, now),
        ])
      }),
    makeRoom: (bytes) => inSession((client) => makeRoom(client, bytes)),
  }
}

async function timeOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ now: string }>('SELECT floor(extract(epoch FROM now()) * 1000) AS now')
  return Number(rows[0]?.now)
}

async function inTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('BEGIN')
  try {
    // Not by lock_timeout: the other one is done soon.
    await client.query(`SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(${LOCK}); SET LOCAL lock_timeout = ${LOCK_MS}`)
    await work()
    await client.query('COMMIT')
  } catch (error) {
    // Of a connection that broke there is nothing left to roll back.
    await client.query('ROLLBACK').catch(() => error)
    throw error
  }
}

async function migrate(client: pg.Client, roles: JournalRoles | undefined): Promise<void> {
  await client.query(`
    CREATE SCHEMA IF NOT EXISTS journal;
    CREATE TABLE IF NOT EXISTS journal.layout (version integer NOT NULL);
    CREATE TABLE IF NOT EXISTS journal.identity (id uuid NOT NULL);
    INSERT INTO journal.identity SELECT gen_random_uuid() WHERE NOT EXISTS (SELECT FROM journal.identity);`)
  const { rows } = await client.query<{ version: number }>('SELECT version FROM layout')
  const version = rows[0]?.version ?? 0
  if (version > STEPS.length) throw new MooringError('newer_layout', 'the journal was laid out by a newer version of Mooring')
  for (const step of STEPS.slice(version)) await client.query(step)
  await client.query(`DELETE FROM layout; INSERT INTO layout VALUES (${STEPS.length})`)
  await client.query(FUNCTIONS)
  await client.query('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA journal FROM PUBLIC')
  if (roles) await admit(client, roles)
}

async function admit(client: pg.Client, roles: JournalRoles): Promise<void> {
  const [edge, reader] = [pg.escapeIdentifier(roles.edge), pg.escapeIdentifier(roles.reader)]
  await client.query(`
    GRANT USAGE ON SCHEMA journal TO ${edge}, ${reader};
    GRANT EXECUTE ON FUNCTION ${CALLABLE.edge.join(', ')} TO ${edge};
    GRANT EXECUTE ON FUNCTION ${CALLABLE.reader.join(', ')} TO ${reader};
    GRANT SELECT ON ALL TABLES IN SCHEMA journal TO ${reader};`)
}

/** Made by themselves and attached then: unlike a piece that is made in its place it holds up nobody who reads or writes. */
async function makePieces(client: pg.Client, today: number): Promise<void> {
  const there = await piecesThere(client)
  for (const piece of CUTS.flatMap((cut) => piecesWanted(cut, today))) {
    if (there.includes(piece.name)) continue
    // Room in each page for what is written over and over again.
    const storage = piece.from.startsWith('lowest_id') ? '' : ' WITH (fillfactor = 60)'
    await client.query(`
      CREATE TABLE ${piece.name} (LIKE ${piece.table})${storage};
      ALTER TABLE ${piece.table} ATTACH PARTITION ${piece.name} FOR VALUES FROM (${piece.from}) TO (${piece.to})`)
  }
}

async function dropPieces(client: pg.Client, today: number): Promise<void> {
  const there = await piecesThere(client)
  const over = CUTS.flatMap((cut) => piecesOver(cut, there, today))
  await runAll(over.map((name) => () => client.query(`DROP TABLE IF EXISTS ${name}`)))
}

async function piecesThere(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'journal'::regnamespace AND relispartition AND relkind = 'r'`,
  )
  return rows.map(({ name }) => name)
}

/** Small tables, by the row. An end that comes later than its beginning may is of a client that no edge has any more. */
async function removeRows(client: pg.Client, now: number): Promise<void> {
  await client.query('DELETE FROM sessions WHERE at < $1 AND (ended OR opened IS NULL)', [now - (REQUEST_DAYS + 1) * DAY_MS])
  await client.query(
    'DELETE FROM presence WHERE connected_at < $1 AND NOT EXISTS (SELECT FROM sessions s WHERE s.tunnel = presence.tunnel AND NOT ended)',
    [now - EVENT_DAYS * DAY_MS],
  )
  await client.query('DELETE FROM followed WHERE until < now()')
}
