import { readdirSync, readlinkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { keepRequests } from '../../test/conformance/journal/test-journal.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../test/conformance/journal/records.ts'
import type { RequestRecord } from '../port.ts'
import { openSqliteJournal } from '../sqlite.ts'
import { openForWriting } from './layout.ts'
import { openTemporaryJournal, silent } from '../../test/support/journal/temporary-journal.ts'

const NAMELESS_TUNNELS = 'DROP INDEX audit_by_hostname; ALTER TABLE audit DROP COLUMN hostname;'
const NAMELESS_GENERATIONS = `${NAMELESS_TUNNELS} DROP INDEX audit_by_resource; ALTER TABLE audit DROP COLUMN generation;`

test('layout 1 is upgraded: its connections get the only edge', async () => {
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

test('layout 2 is upgraded: its audit entries have no generation', async () => {
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

test('layout 4 is upgraded: earlier audit entries get the hostname from later ones', async () => {
  await using place = await openTemporaryJournal()
  const record = auditRecord({ namespace: 'n' })
  await place.journal.audit(record)
  await place.journal[Symbol.asyncDispose]()
  const db = new DatabaseSync(place.path)
  db.exec(`${NAMELESS_TUNNELS} PRAGMA user_version = 4`)
  db.close()
  await using journal = await openSqliteJournal({ path: place.path, log: silent })
  expect(await journal.auditEntries({ namespace: 'n' }, { limit: 5 })).toEqual([record])
  const resource = { ...record.resource, hostname: '0123456789abcdef' }
  const later = auditRecord({ namespace: 'n', resource, generation: 3 })
  await journal.audit(later)
  expect(await journal.auditEntries({ namespace: 'n' }, { limit: 5 })).toEqual([later, { ...record, resource }])
})

/** Creates a day's table of layout 3. */
function singleRows(db: DatabaseSync, day: number, records: readonly RequestRecord[]): void {
  db.exec(`CREATE TABLE requests_${day} (
    tunnel INTEGER NOT NULL, id BLOB NOT NULL, at INTEGER NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    status INTEGER NOT NULL, ms REAL NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL, ip TEXT NOT NULL,
    edge INTEGER NOT NULL, reason TEXT, h2 INTEGER NOT NULL, PRIMARY KEY (tunnel, id)) WITHOUT ROWID`)
  const put = db.prepare(
    `INSERT INTO requests_${day} SELECT number, unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM tunnels WHERE uid = ?`,
  )
  for (const record of records) {
    const { id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, origin, reason, protocol, tunnel } = record
    const flags = [Number(origin === 'edge'), reason, Number(protocol === 'h2')] as const
    put.run(id, at, method, path, status, durationMs, bytesIn, bytesOut, sourceIp, ...flags, tunnel)
  }
}

test('layout 3, with a row for each request, is upgraded', async () => {
  await using place = await openTemporaryJournal()
  const now = Date.now()
  const day = Math.floor(now / 86_400_000)
  const edge = { origin: 'edge', status: 403, reason: 'ip_denied', protocol: 'h2', path: '/älter/☃' } as const
  const ages = [0, 1, 2, 300, 301, 5_000]
  const records = ages.flatMap((age, index) =>
    ['one', 'two'].map((tunnel) => requestRecord({ tunnel, at: day * 86_400_000 + age, ...(index % 2 === 0 && edge) })),
  )
  await keepRequests(place.journal, records)
  await place.journal[Symbol.asyncDispose]()
  {
    using db = new DatabaseSync(place.path)
    db.exec(`${NAMELESS_TUNNELS} DROP TABLE requests_${day}; PRAGMA user_version = 3`)
    singleRows(db, day, records)
  }
  await using journal = await openSqliteJournal({ path: place.path, log: silent })
  for (const tunnel of ['one', 'two']) {
    const expected = records.filter((record) => record.tunnel === tunnel).toReversed()
    expect(await journal.requests({ tunnel }, { limit: 100 })).toEqual(expected)
  }
  using db = new DatabaseSync(place.path)
  expect(db.prepare(`SELECT count(*) AS rows FROM requests_${day}`).get()).toEqual({ rows: 6 })
  expect(db.prepare("SELECT name FROM sqlite_master WHERE name = 'single'").all()).toEqual([])
  const later = requestRecord({ tunnel: 'one' })
  await keepRequests(journal, [later])
  expect((await journal.requests({ tunnel: 'one' }, { limit: 1 }))[0]).toEqual(later)
})

test('layout 5 is upgraded once: its sums of response times lose the share of edge responses', async () => {
  await using place = await openTemporaryJournal()
  const at = Math.floor(Date.now() / 60_000) * 60_000 - 1
  const edge = { origin: 'edge', status: 403 } as const
  await keepRequests(place.journal, [
    ...[4, 8].map((durationMs) => requestRecord({ tunnel: 't', at, durationMs })),
    requestRecord({ tunnel: 't', at, ...edge }),
    requestRecord({ tunnel: 'refused', at, ...edge }),
  ])
  await place.journal[Symbol.asyncDispose]()
  {
    using db = new DatabaseSync(place.path)
    db.exec('UPDATE minutes SET ms = 6 * requests; PRAGMA user_version = 5')
  }
  for (const start of ['the first', 'the second']) {
    await using journal = await openSqliteJournal({ path: place.path, log: silent })
    const averageOf = async (tunnel: string) => (await journal.stats(tunnel, { from: at, to: at + 1 })).averageResponseTimeMs
    expect([await averageOf('t'), await averageOf('refused')], start).toEqual([6, null])
  }
})

test('a file of a newer layout is closed again', async () => {
  await using place = await openTemporaryJournal()
  await place.journal[Symbol.asyncDispose]()
  const db = new DatabaseSync(place.path)
  db.exec('PRAGMA user_version = 1000')
  db.close()
  expect(() => openForWriting(place.path)).toThrow('newer version')
  expect(openFiles().filter((path) => path.startsWith(place.path))).toEqual([])
})

function openFiles(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      // The descriptor of the listing itself.
      return []
    }
  })
}
