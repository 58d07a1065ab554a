import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import {
  type JournalLogin,
  createJournalOwner,
  createPostgresqlReader,
  type PostgresqlReader,
} from '../../../journal/postgresql.ts'
import { startPostgres, type ThrowAwayPostgres } from '../postgresql/postgres.ts'
import { silent } from './temporary-journal.ts'
import { openSpool, type Spool, type SpoolOptions } from '../../../journal/spool.ts'

/** PostgreSQL server with an empty journal schema and its three roles. */
export interface JournalServer extends AsyncDisposable {
  readonly server: ThrowAwayPostgres
  readonly logins: Readonly<Record<'owner' | 'edge' | 'reader', JournalLogin>>
}

const PASSWORD = 'of-a-throw-away-role'
const ROLES = { edge: 'journal_edge', reader: 'journal_reader' }

/** Starts a server, and creates roles and schema as the owner of a journal does. */
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

/** Journal that spools ship to, with a reader of the shipped records. */
export interface ReadableJournal extends AsyncDisposable {
  readonly server: JournalServer
  readonly reader: PostgresqlReader
}

/** Starts a {@link JournalServer} with a reader. */
export async function readableJournal(): Promise<ReadableJournal> {
  const parts = new AsyncDisposableStack()
  const server = parts.use(await startJournalServer())
  const reader = parts.use(createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent }))
  return { server, reader, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

/** Directory for a spool, and another one with the login that it ships with. */
export interface TemporarySpool extends AsyncDisposable {
  readonly directory: string
  readonly login: string
  /** Writes the login that the spool reads, as when a Secret is mounted or changes. */
  setLogin(login: JournalLogin): Promise<void>
  open(options?: Partial<SpoolOptions>): Promise<Spool>
}

/** Creates the directories; removed on disposal. */
export async function temporarySpool(): Promise<TemporarySpool> {
  const root = await mkdtemp(join(tmpdir(), 'mooring-spool-'))
  const [directory, login] = [join(root, 'spool'), join(root, 'login')]
  await mkdir(login)
  return {
    directory,
    login,
    async setLogin({ uri, ca }) {
      if (ca !== undefined) await writeFile(join(login, 'ca.crt'), ca)
      await writeFile(join(root, 'uri'), uri)
      await rename(join(root, 'uri'), join(login, 'uri'))
    },
    open: (options = {}) => openSpool({ directory, login, log: silent, ...options }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}
