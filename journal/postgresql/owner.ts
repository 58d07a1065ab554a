import pg from 'pg'
import { MooringError } from '../../shared/errors.ts'
import { CALLABLE, FUNCTIONS } from './functions.ts'
import { createClient, closeClient, ignore, type LoginSource } from './client.ts'
import { DATABASE_TABLES } from './databases.ts'
import { WEBHOOK_TABLES } from './deliveries.ts'
import { hourOf, SAMPLE_DAYS } from '../databases.ts'
import { makeRoom, expiredPartitions, requiredPartitions } from './partitions.ts'
import { AUDIT_DAYS, EVENT_DAYS, REQUEST_DAYS } from '../port.ts'
import { DELIVERY_DAYS } from '../webhooks.ts'
import { BACKEND_TIMES, PARTITIONED_TABLES, GENERATIONS, HOSTNAMES, REFUSALS, TABLES } from './tables.ts'

/** Steps of the schema's layout; each builds the next layout from the previous one. A schema of a newer Mooring is rejected. */
const STEPS: readonly string[] = [TABLES, GENERATIONS, REFUSALS, HOSTNAMES, BACKEND_TIMES, WEBHOOK_TABLES, DATABASE_TABLES]
/** Number of the advisory lock under which two operators take turns: "moorj" in ASCII. */
const LOCK = 0x6d_6f_6f_72_6a
const DAY_MS = 86_400_000
/** Maximum wait for a lock in milliseconds. Dropping a partition waits for its readers, and blocks the next ones meanwhile. */
const LOCK_MS = 2_000

export interface JournalRoles {
  readonly edge: string
  readonly reader: string
}

export interface JournalOwnerDeps {
  /** Login of the role that owns the schema, or may create it. */
  readonly login: LoginSource
}

/**
 * Maintenance of the journal in PostgreSQL by the operator. Each function may run at any time, repeatedly, and in several
 * processes at once.
 */
export interface JournalOwner {
  /**
   * Brings the schema to this version, and grants its functions to the roles, which must exist. Without roles only the owner may
   * use it.
   * @throws MooringError `newer_layout`; what the driver throws
   */
  migrate(roles: JournalRoles | undefined): Promise<void>
  /**
   * Creates the partitions of the coming days and drops those past their retention. Call it after `migrate`. Runs all steps, then
   * throws what the driver threw, for example for a partition that has readers, or an AggregateError.
   * @param at milliseconds since the epoch; default: the database's clock, which decides what is kept. A process whose clock is
   * days ahead would have all requests dropped
   */
  sweep(at?: number): Promise<void>
  /**
   * Removes the oldest requests, one day at a time, or the oldest refused logins, three days at a time, whichever take more
   * space, until the database has at most `bytes`: a full disk would stop the records with a longer retention too. Returns the
   * names of the emptied partitions. Call it after `migrate`. Throws what the driver throws.
   */
  makeRoom(bytes: number): Promise<readonly string[]>
}

export function createJournalOwner({ login }: JournalOwnerDeps): JournalOwner {
  async function inSession<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = createClient(await login(), { application_name: 'mooring-journal-owner', query_timeout: 300_000 })
    // The waiting statement reports a broken connection.
    client.on('error', ignore)
    try {
      await client.connect()
      await client.query(`SET search_path = journal, pg_catalog; SET lock_timeout = ${LOCK_MS}`)
      return await work(client)
    } finally {
      await closeClient(client)
    }
  }

  return {
    migrate: (roles) => inSession((client) => inTransaction(client, () => migrate(client, roles))),
    sweep: (at) =>
      inSession(async (client) => {
        const now = at ?? (await timeOf(client))
        const today = Math.floor(now / DAY_MS)
        await runAll([
          () => inTransaction(client, () => createPartitions(client, today)),
          () => dropPartitions(client, today),
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
    // lock_timeout does not apply here: the other operator is done soon.
    await client.query(`SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(${LOCK}); SET LOCAL lock_timeout = ${LOCK_MS}`)
    await work()
    await client.query('COMMIT')
  } catch (error) {
    // A broken connection has rolled back already.
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
  if (version > STEPS.length) throw new MooringError('newer_layout', 'journal schema was created by a newer version of Mooring')
  for (const step of STEPS.slice(version)) await client.query(step)
  await client.query(`DELETE FROM layout; INSERT INTO layout VALUES (${STEPS.length})`)
  await client.query(FUNCTIONS)
  await client.query('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA journal FROM PUBLIC')
  if (roles) await grant(client, roles)
}

async function grant(client: pg.Client, roles: JournalRoles): Promise<void> {
  const [edge, reader] = [pg.escapeIdentifier(roles.edge), pg.escapeIdentifier(roles.reader)]
  await client.query(`
    GRANT USAGE ON SCHEMA journal TO ${edge}, ${reader};
    GRANT EXECUTE ON FUNCTION ${CALLABLE.edge.join(', ')} TO ${edge};
    GRANT EXECUTE ON FUNCTION ${CALLABLE.reader.join(', ')} TO ${reader};
    GRANT SELECT ON ALL TABLES IN SCHEMA journal TO ${reader};`)
}

/**
 * Creates partitions as tables of their own and attaches them: unlike CREATE TABLE … PARTITION OF this blocks neither readers nor
 * writers.
 */
async function createPartitions(client: pg.Client, today: number): Promise<void> {
  const existing = await existingPartitions(client)
  for (const partition of PARTITIONED_TABLES.flatMap((table) => requiredPartitions(table, today))) {
    if (existing.includes(partition.name)) continue
    // Free space in each page for rows that are updated often.
    const storage = partition.from.startsWith('lowest_id') ? '' : ' WITH (fillfactor = 60)'
    await client.query(`
      CREATE TABLE ${partition.name} (LIKE ${partition.table})${storage};
      ALTER TABLE ${partition.table} ATTACH PARTITION ${partition.name} FOR VALUES FROM (${partition.from}) TO (${partition.to})`)
  }
}

async function dropPartitions(client: pg.Client, today: number): Promise<void> {
  const existing = await existingPartitions(client)
  const expired = PARTITIONED_TABLES.flatMap((table) => expiredPartitions(table, existing, today))
  await runAll(expired.map((name) => () => client.query(`DROP TABLE IF EXISTS ${name}`)))
}

async function existingPartitions(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'journal'::regnamespace AND relispartition AND relkind = 'r'`,
  )
  return rows.map(({ name }) => name)
}

/** Removes rows of small tables. A session past this age without an end has a client that no edge knows any more. */
async function removeRows(client: pg.Client, now: number): Promise<void> {
  await client.query('DELETE FROM sessions WHERE at < $1 AND (ended OR opened IS NULL)', [now - (REQUEST_DAYS + 1) * DAY_MS])
  await client.query(
    'DELETE FROM presence WHERE connected_at < $1 AND NOT EXISTS (SELECT FROM sessions s WHERE s.tunnel = presence.tunnel AND NOT ended)',
    [now - EVENT_DAYS * DAY_MS],
  )
  await client.query('DELETE FROM followed WHERE until < now()')
  await client.query('DELETE FROM tunnel_events WHERE id < lowest_id($1)', [now - EVENT_DAYS * DAY_MS])
  await client.query('DELETE FROM deliveries WHERE id < lowest_id($1) AND next_at IS NULL', [now - DELIVERY_DAYS * DAY_MS])
  await client.query('DELETE FROM failure_streaks WHERE since < $1', [now - EVENT_DAYS * DAY_MS])
  await client.query('DELETE FROM usage WHERE hour < $1', [hourOf(now - AUDIT_DAYS * DAY_MS)])
  await client.query('DELETE FROM samples WHERE at < $1', [now - SAMPLE_DAYS * DAY_MS])
}

/**
 * Runs steps one after the other, all of them whether the previous ones succeeded or not.
 * @throws the error of the step that failed, or an AggregateError of several
 */
async function runAll(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} of ${steps.length} steps failed`)
}
