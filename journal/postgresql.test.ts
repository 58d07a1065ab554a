import { afterAll, beforeAll } from 'vitest'
import { type JournalServer, startJournalServer } from '../test/support/journal-server.ts'
import { conformance } from './conformance.ts'
import type { Journal } from './port.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from './postgresql.ts'
import { silent } from './sqlite/open-temporary.ts'

let server: JournalServer
let journal: Journal
beforeAll(async () => {
  server = await startJournalServer()
  const log = silent
  const loginOf = (login: JournalLogin) => ({ log, login: () => Promise.resolve(login) })
  const reader = createPostgresqlReader(loginOf(server.logins.reader))
  const [edge, apiserver] = [server.logins.edge, server.logins.reader].map((login) => createPostgresqlWriter(loginOf(login)))
  if (!edge || !apiserver) throw new Error('a writer is missing')
  journal = {
    ...reader,
    request: (record) => edge.request(record),
    connection: (record) => edge.connection(record),
    audit: (record) => apiserver.audit(record),
    async [Symbol.asyncDispose]() {
      for (const part of [edge, apiserver, reader]) await part[Symbol.asyncDispose]()
    },
  }
})
afterAll(async () => {
  await journal[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

conformance('a journal in PostgreSQL, by the roles of edges and apiservers', async () => ({
  journal,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}))
