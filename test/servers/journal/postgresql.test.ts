import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type JournalServer, startJournalServer } from '../../support/journal/journal-server.ts'
import { conformance } from '../../conformance/journal.ts'
import { databaseConformance } from '../../conformance/journal/databases.ts'
import { outboxConformance } from '../../conformance/journal/webhooks.ts'
import { keepRequests, newTunnel } from '../../conformance/journal/test-journal.ts'
import { requestRecord } from '../../conformance/journal/records.ts'
import type { Journal } from '../../../journal/port.ts'
import type { DatabaseRecords } from '../../../journal/databases.ts'
import type { WebhookOutbox } from '../../../journal/webhooks.ts'
import { closeClient, createClient } from '../../../journal/postgresql/client.ts'
import { KEEP_REQUESTS } from '../../../journal/postgresql/keeper.ts'
import { joinColumns, requestColumns } from '../../../journal/postgresql/record-format.ts'
import { requestBatch } from '../../../journal/request-text.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../../../journal/postgresql.ts'
import { silent } from '../../support/journal/temporary-journal.ts'
import { LATER } from '../../support/patience.ts'

let server: JournalServer
let journal: Journal
let webhooks: WebhookOutbox
let databases: DatabaseRecords
beforeAll(async () => {
  server = await startJournalServer()
  const log = silent
  const loginOf = (login: JournalLogin) => ({ log, login: () => Promise.resolve(login) })
  const reader = createPostgresqlReader(loginOf(server.logins.reader))
  const operator = createPostgresqlReader(loginOf(server.logins.owner))
  // API servers list deliveries and add some; the rest is the operator's.
  webhooks = {
    ...operator.webhooks,
    list: (webhook, page) => reader.webhooks.list(webhook, page),
    find: (webhook, id) => reader.webhooks.find(webhook, id),
    add: (delivery) => reader.webhooks.add(delivery),
  }
  // API servers only read the records of databases.
  databases = {
    ...reader.databases,
    keepUsage: (records) => operator.databases.keepUsage(records),
    keepSamples: (samples) => operator.databases.keepSamples(samples),
  }
  const [edge, apiserver] = [server.logins.edge, server.logins.reader].map((login) => createPostgresqlWriter(loginOf(login)))
  if (!edge || !apiserver) throw new Error('a writer is missing')
  journal = {
    ...reader,
    request: (record) => edge.request(record),
    connection: (record) => edge.connection(record),
    audit: (record) => apiserver.audit(record),
    async [Symbol.asyncDispose]() {
      for (const part of [edge, apiserver, reader, operator]) await part[Symbol.asyncDispose]()
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

outboxConformance('an outbox in PostgreSQL with the roles of edges, apiservers and the operator', () => ({ journal, webhooks }))

databaseConformance('records of dedicated databases in PostgreSQL with the roles of apiservers and the operator', () => ({
  databases,
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

test('a follower that begins while a request is being kept receives it before a search returns it', async () => {
  const [edge, owner] = [server.logins.edge, server.logins.owner].map((login) => createClient(login, {}))
  if (!edge || !owner) throw new Error('a client is missing')
  onTestFinished(async () => {
    await Promise.all([edge, owner].map(closeClient))
  })
  await Promise.all([edge.connect(), owner.connect()])
  const tunnel = newTunnel()
  const heard: string[] = []
  // A second ahead: the follower begins before it, on a busy machine too.
  const slow = requestRecord({ tunnel, path: '/slow', at: Date.now() + 1_000 })
  await edge.query('BEGIN')
  await edge.query(KEEP_REQUESTS.text, [...joinColumns([requestColumns(requestBatch([slow]))])])
  onTestFinished(journal.follow(tunnel, ({ path }) => heard.push(path)))
  await vi.waitFor(async () => {
    expect((await owner.query('SELECT FROM journal.followed WHERE tunnel = $1', [tunnel])).rowCount).toBe(1)
    expect(Date.now()).toBeGreaterThan(slow.at)
  }, LATER)
  // Reads what is kept so far.
  expect(await journal.requests({ tunnel }, { limit: 10 })).toEqual([])
  await edge.query('COMMIT')
  expect(await journal.requests({ tunnel, pathPrefix: '/slow' }, { limit: 10 })).toHaveLength(1)
  expect(heard).toContain('/slow')
})
