import pg from 'pg'
import { JOURNAL_DATABASE } from '../../crds/names.ts'
import { MooringError } from '../../shared/errors.ts'
import type { AdminTarget } from '../engines/engine.ts'
import { dialling as diallingServer, ignore, quoteName, quoteText, TIMEOUTS } from '../engines/postgresql/connection.ts'
import { createScram } from '../engines/scram.ts'
import type { Login, User } from './logins.ts'

/**
 * Connection limit of each role. The operator needs some seven connections, each API server some six, each edge one. The role of edges has
 * no limit of its own (-1), as a rejected edge could ship nothing and only Mooring's processes have the login: max_connections of the
 * server is the limit. Mooring's own server admits some 250 edges by its CAPACITY.
 */
const CONNECTIONS: Readonly<Record<User, number>> = { owner: 10, edge: -1, reader: 100 }

/** Creates or corrects the roles and the journal's database on Mooring's own server. Throws errors of the driver. */
export async function prepareServer(target: AdminTarget, logins: Readonly<Record<User, Login>>): Promise<void> {
  const { user, password } = target
  const config = {
    ...diallingServer(target, TIMEOUTS),
    user,
    password,
    database: 'postgres',
    statement_timeout: TIMEOUTS.statementMs,
  }
  await inSession(config, async (client) => {
    for (const user of ['owner', 'edge', 'reader'] as const) await keepRole(client, logins[user], CONNECTIONS[user])
    const database = quoteName(JOURNAL_DATABASE)
    const { rowCount } = await client.query('SELECT FROM pg_catalog.pg_database WHERE datname = $1', [JOURNAL_DATABASE])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${database} OWNER ${quoteName(logins.owner.role)} TEMPLATE template0`)
    await client.query(`REVOKE ALL ON DATABASE ${database} FROM PUBLIC`)
    await admit(client, JOURNAL_DATABASE, logins)
  })
}

/** Whether a login may create roles, and on which database. Throws errors of the driver. */
export async function rightsOf(config: pg.ClientConfig): Promise<{ readonly makesRoles: boolean }> {
  return inSession(config, async (client) => {
    const { rows } = await client.query<{ may: boolean }>(
      'SELECT rolcreaterole OR rolsuper AS may FROM pg_catalog.pg_roles WHERE rolname = current_user',
    )
    return { makesRoles: rows[0]?.may === true }
  })
}

/** Records that this installation owns the journal. @throws MooringError `journal_taken`; errors of the driver */
export async function claimOutside(config: pg.ClientConfig, installation: string): Promise<void> {
  await inSession(config, (client) => claim(client, installation))
}

/** Creates the roles of edges and API servers by an outside login, which owns the journal itself. Throws errors of the driver. */
export async function prepareOutside(
  config: pg.ClientConfig & { readonly database: string },
  logins: Readonly<Record<'edge' | 'reader', Login>>,
): Promise<void> {
  await inSession(config, async (client) => {
    for (const user of ['edge', 'reader'] as const) await keepRole(client, logins[user], CONNECTIONS[user])
    await admit(client, config.database, logins)
  })
}

async function admit(
  client: pg.Client,
  database: string,
  { edge, reader }: Readonly<Record<'edge' | 'reader', Login>>,
): Promise<void> {
  await client.query(`GRANT CONNECT ON DATABASE ${quoteName(database)} TO ${quoteName(edge.role)}, ${quoteName(reader.role)}`)
}

async function keepRole(client: pg.Client, { role, password }: Login, connections: number): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM pg_catalog.pg_roles WHERE rolname = $1', [role])
  // No statement contains the password itself, so no log does.
  const verifier = quoteText(await createScram().verifier(password))
  const verb = rowCount === 0 ? 'CREATE' : 'ALTER'
  await client.query(`${verb} ROLE ${quoteName(role)} LOGIN CONNECTION LIMIT ${connections} PASSWORD ${verifier}`)
}

async function inSession<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config)
  // The pending statement reports a broken connection.
  client.on('error', ignore)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Records in an outside database which installation owns the journal: two installations in one database would revoke each other's roles.
 * @param installation uid of the namespace mooring-system
 * @throws MooringError `journal_taken` when another installation owns it; errors of the driver
 */
async function claim(client: pg.Client, installation: string): Promise<void> {
  await client.query(`
    CREATE SCHEMA IF NOT EXISTS journal;
    CREATE TABLE IF NOT EXISTS journal.installation (id text NOT NULL, only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one))`)
  await client.query('INSERT INTO journal.installation (id) VALUES ($1) ON CONFLICT DO NOTHING', [installation])
  const { rows } = await client.query<{ id: string }>('SELECT id FROM journal.installation')
  if (rows[0]?.id === installation) return
  throw new MooringError(
    'journal_taken',
    'the database of the journal belongs to another installation of Mooring: give each a database of its own, ' +
      'or, when that one is gone for good, DROP TABLE journal.installation',
  )
}
