import pg from 'pg'
import type { JournalLogin } from '../../../journal/postgresql.ts'
import { createJournalOwner } from '../../../journal/postgresql.ts'
import { startPostgres, type ThrowAwayPostgres } from '../postgresql/postgres.ts'

/** PostgreSQL server with an empty journal schema and its three roles. */
export interface JournalServer extends AsyncDisposable {
  readonly server: ThrowAwayPostgres
  readonly logins: Readonly<Record<'owner' | 'edge' | 'reader', JournalLogin>>
}

const PASSWORD = 'of-a-throw-away-role'
const ROLES = { edge: 'journal_edge', reader: 'journal_reader' }

export async function startJournalServer(): Promise<JournalServer> {
  const server = await startPostgres('15', { own: ['journal'] })
  const admin = await server.client()
  for (const role of ['journal_owner', ROLES.edge, ROLES.reader]) {
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD ${pg.escapeLiteral(PASSWORD)}`)
  }
  await admin.query('CREATE DATABASE journal OWNER journal_owner')
  const { host, port } = server.target
  const loginOf = (role: string): JournalLogin => ({
    uri: `postgresql://${role}:${PASSWORD}@${host}:${port}/journal?sslmode=disable`,
  })
  const logins = { owner: loginOf('journal_owner'), edge: loginOf(ROLES.edge), reader: loginOf(ROLES.reader) }
  const owner = createJournalOwner({ login: () => Promise.resolve(logins.owner) })
  await owner.migrate(ROLES)
  await owner.sweep(Date.now())
  return { server, logins, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}
