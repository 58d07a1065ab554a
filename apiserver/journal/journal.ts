import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Journal } from '../../journal/port.ts'
import { createPostgresqlReader, loginFromDirectory } from '../../journal/postgresql.ts'
import { openSpool } from '../../journal/spool.ts'

export interface ApiJournalDeps {
  /** Where the Secret with the login is mounted. */
  readonly login: string
  /** Where what is not in the journal yet is kept; no other process uses it. */
  readonly directory: string
  readonly log: Logger
  readonly registry: Registry
}

/** Audit entries are small: this is a hundred thousand of them. */
const SPOOL_BYTES = 64 * 1024 * 1024

/**
 * The journal as an API server of the cluster home has it: it reads what edges wrote, and writes what it changed itself.
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
