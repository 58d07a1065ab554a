import { afterAll, beforeAll } from 'vitest'
import { conformance } from '../test/conformance/journal.ts'
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
