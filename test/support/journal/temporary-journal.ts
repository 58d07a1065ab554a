import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteJournal, type SqliteJournal, type SqliteJournalOptions } from '../../../journal/sqlite.ts'

export const silent = { warn: () => undefined, info: () => undefined }

export interface TemporaryJournal extends AsyncDisposable {
  readonly journal: SqliteJournal
  readonly path: string
}

/** Opens an empty journal for a test; closed and removed on disposal. */
export async function openTemporaryJournal(options: Partial<SqliteJournalOptions> = {}): Promise<TemporaryJournal> {
  const dir = await mkdtemp(join(tmpdir(), 'mooring-journal-'))
  const path = join(dir, 'journal.db')
  const journal = await openSqliteJournal({ path, log: silent, ...options })
  return {
    journal,
    path,
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}
