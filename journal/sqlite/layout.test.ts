import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { auditRecord, connectionRecord } from '../conformance/records.ts'
import { openSqliteJournal } from '../sqlite.ts'
import { openTemporaryJournal, silent } from './open-temporary.ts'

const NAMELESS_GENERATIONS = 'DROP INDEX audit_by_resource; ALTER TABLE audit DROP COLUMN generation;'

test('a file from before connections named their edge is taken over: there was only one', async () => {
  await using place = await openTemporaryJournal()
  const record = connectionRecord({ tunnel: 't' })
  await place.journal.connection(record)
  await place.journal[Symbol.asyncDispose]()
  const db = new DatabaseSync(place.path)
  db.exec(`${NAMELESS_GENERATIONS} ALTER TABLE connections DROP COLUMN edge; PRAGMA user_version = 1`)
  db.close()
  await using journal = await openSqliteJournal({ path: place.path, log: silent })
  const later = connectionRecord({ tunnel: 't', edge: 'another' })
  await journal.connection(later)
  expect(await journal.connections({ tunnel: 't', refused: false }, { limit: 5 })).toEqual([later, record])
})

test('a file from before entries named a generation is taken over: nobody knows theirs', async () => {
  await using place = await openTemporaryJournal()
  const record = auditRecord({ namespace: 'n' })
  await place.journal.audit(record)
  await place.journal[Symbol.asyncDispose]()
  const db = new DatabaseSync(place.path)
  db.exec(`${NAMELESS_GENERATIONS} PRAGMA user_version = 2`)
  db.close()
  await using journal = await openSqliteJournal({ path: place.path, log: silent })
  const later = auditRecord({ namespace: 'n', generation: 3 })
  await journal.audit(later)
  expect(await journal.auditEntries({ namespace: 'n' }, { limit: 5 })).toEqual([later, { ...record, generation: null }])
})
