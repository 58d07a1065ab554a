import { afterAll, beforeAll } from 'vitest'
import { conformance } from './conformance.ts'
import { openTemporaryJournal, type TemporaryJournal } from './sqlite/open-temporary.ts'

let shared: TemporaryJournal
beforeAll(async () => {
  shared = await openTemporaryJournal()
})
afterAll(() => shared[Symbol.asyncDispose]())

conformance('a journal in a SQLite file', async () => ({
  journal: shared.journal,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}))
