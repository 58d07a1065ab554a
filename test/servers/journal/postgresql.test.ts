import { afterAll, beforeAll, expect, test } from 'vitest'
import { type JournalServer, startJournalServer } from '../../support/journal/journal-server.ts'
import { conformance } from '../../conformance/journal.ts'
import { keepRequests, newTunnel } from '../../conformance/journal/test-journal.ts'
import { requestRecord } from '../../conformance/journal/records.ts'
import type { Journal } from '../../../journal/port.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../../../journal/postgresql.ts'
import { silent } from '../../support/journal/temporary-journal.ts'

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

conformance('a journal in PostgreSQL with the roles of edges and apiservers', async () => ({
  journal,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}))

test('a record that is shipped repeatedly is kept and counted once', async () => {
  const tunnel = newTunnel()
  const records = Array.from({ length: 100 }, () => requestRecord({ tunnel }))
  await keepRequests(journal, records.slice(0, 60))
  await keepRequests(journal, [...records, ...records])
  expect(await journal.requests({ tunnel }, { limit: 200 })).toHaveLength(100)
  const span = { from: Date.now() - 3_600_000, to: Date.now() + 60_000 }
  expect((await journal.stats(tunnel, span)).requests).toBe(100)
})
