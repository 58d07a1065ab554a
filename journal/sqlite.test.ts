import { afterAll, beforeAll } from 'vitest'
import { conformance } from '../test/conformance/journal.ts'
import { databaseConformance } from '../test/conformance/journal/databases.ts'
import { outboxConformance } from '../test/conformance/journal/webhooks.ts'
import { openTemporaryJournal, type TemporaryJournal } from '../test/support/journal/temporary-journal.ts'

let shared: TemporaryJournal
beforeAll(async () => {
  shared = await openTemporaryJournal()
})
afterAll(() => shared[Symbol.asyncDispose]())

conformance('a journal in a SQLite file', async () => ({
  journal: shared.journal,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}))

outboxConformance('an outbox in a SQLite file', () => ({ journal: shared.journal, webhooks: shared.journal.webhooks }))

databaseConformance('records of dedicated databases in a SQLite file', () => shared.journal)
