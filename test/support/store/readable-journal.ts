import { type JournalServer, startJournalServer } from './journal-server.ts'
import { createPostgresqlReader, type PostgresqlReader } from '../../../journal/postgresql.ts'
import { silent } from '../journal/temporary-journal.ts'

/** Journal that spools ship to, with a reader of the shipped records. */
export interface ReadableJournal extends AsyncDisposable {
  readonly server: JournalServer
  readonly reader: PostgresqlReader
}

export async function readableJournal(): Promise<ReadableJournal> {
  const parts = new AsyncDisposableStack()
  const server = parts.use(await startJournalServer())
  const reader = parts.use(createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent }))
  return { server, reader, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}
