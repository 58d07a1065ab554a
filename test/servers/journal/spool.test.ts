import { afterAll, beforeAll } from 'vitest'
import { type JournalServer, startJournalServer, temporarySpool } from '../../support/journal/journal-server.ts'
import { conformance } from '../../conformance/journal.ts'
import type { Journal } from '../../../journal/port.ts'
import { createPostgresqlReader } from '../../../journal/postgresql.ts'
import { silent } from '../../support/journal/temporary-journal.ts'
import { patient } from '../../support/patience.ts'

const parts = new AsyncDisposableStack()
let journal: Journal

beforeAll(async () => {
  const server: JournalServer = parts.use(await startJournalServer())
  const [edge, apiserver] = [parts.use(await temporarySpool()), parts.use(await temporarySpool())]
  await edge.setLogin(server.logins.edge)
  await apiserver.setLogin(server.logins.reader)
  const [requests, audit] = [parts.use(await edge.open()), parts.use(await apiserver.open())]
  const reader = parts.use(createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent }))
  /** Waits until all acknowledged records are in the journal. */
  const arrived = () => Promise.all([requests.shipped(patient(10_000)), audit.shipped(patient(10_000))])
  const after = async <T>(read: () => Promise<T>): Promise<T> => {
    await arrived()
    return read()
  }
  journal = {
    requests: (filter, page) => after(() => reader.requests(filter, page)),
    connections: (filter, page) => after(() => reader.connections(filter, page)),
    auditEntries: (filter, page) => after(() => reader.auditEntries(filter, page)),
    stats: (tunnel, span) => after(() => reader.stats(tunnel, span)),
    audited: (changes) => after(() => reader.audited(changes)),
    openSessions: () => after(() => reader.openSessions()),
    presence: (tunnels) => after(() => reader.presence(tunnels)),
    follow: (tunnel, listener) => reader.follow(tunnel, listener),
    request: (record) => requests.request(record),
    connection: (record) => requests.connection(record),
    audit: (record) => audit.audit(record),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
})
afterAll(() => parts.disposeAsync())

conformance('a journal in PostgreSQL behind spools on disk', async () => ({
  journal,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}))
