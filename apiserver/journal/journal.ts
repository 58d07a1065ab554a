import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Journal } from '../../journal/port.ts'
import { createPostgresqlReader, loginFromDirectory } from '../../journal/postgresql.ts'
import { openSpool } from '../../journal/spool.ts'

export interface ApiJournalDeps {
  /** Mount path of the Secret with the PostgreSQL login. */
  readonly login: string
  /** Directory of entries that are not in the journal yet; no other process uses it. */
  readonly directory: string
  readonly log: Logger
  readonly registry: Registry
}

/** Maximum size of the spool: some hundred thousand audit entries. */
const SPOOL_BYTES = 64 * 1024 * 1024

/**
 * Opens the journal of an API server in the cluster mode: it reads the records of all edges and writes its own audit entries through a spool.
 * @throws JournalFileError when the directory cannot be used
 */
export async function openApiJournal({ login, directory, log, registry }: ApiJournalDeps): Promise<Journal> {
  const spool = await openSpool({ directory, login, log, registry, bytes: SPOOL_BYTES })
  const reader = createPostgresqlReader({ login: loginFromDirectory(login), log })
  return {
    ...reader,
    ...spool,
    async [Symbol.asyncDispose]() {
      await spool[Symbol.asyncDispose]()
      await reader[Symbol.asyncDispose]()
    },
  }
}
