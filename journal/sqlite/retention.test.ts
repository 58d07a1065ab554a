import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { keepRequests } from '../../test/conformance/journal/test-journal.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../test/conformance/journal/records.ts'
import { openTemporaryJournal } from '../../test/support/journal/temporary-journal.ts'

const DAY_MS = 86_400_000

function tablesOf(path: string): string[] {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return db
      .prepare(`SELECT name FROM sqlite_master WHERE name GLOB 'requests_*' ORDER BY name`)
      .all()
      .map(({ name }) => String(name))
  } finally {
    db.close()
  }
}

test('records are removed past their retention, and not before', async () => {
  const start = Math.floor(Date.now() / DAY_MS) * DAY_MS
  let now = start
  await using place = await openTemporaryJournal({ now: () => now })
  const { journal, path } = place
  const tunnel = 'one'
  const old = Array.from({ length: 5_000 }, (_, index) =>
    requestRecord({ tunnel, at: start + index, path: '/'.padEnd(400, 'x') }),
  )
  await keepRequests(journal, old)
  const open = connectionRecord({ tunnel, at: start })
  const gone = connectionRecord({ tunnel, at: start })
  const events = [open, gone, connectionRecord({ ...gone, type: 'disconnect', id: auditRecord({ namespace: '', at: start }).id })]
  for (const record of events) await journal.connection(record)
  await journal.audit(auditRecord({ namespace: 'n', at: start }))

  const left = async () => ({
    requests: (await journal.requests({ tunnel }, { limit: 10_000 })).length,
    summed: (await journal.stats(tunnel, { from: start, to: start + DAY_MS })).requests,
    connections: (await journal.connections({ tunnel, refused: true }, { limit: 10 })).length,
    audit: (await journal.auditEntries({ namespace: 'n' }, { limit: 10 })).length,
  })
  const all = { requests: 5_000, summed: 5_000, connections: 3, audit: 1 }
  for (const [days, expected] of [
    [7, all],
    [8, { ...all, requests: 0 }],
    [89, { ...all, requests: 0 }],
    [91, { requests: 0, summed: 0, connections: 1, audit: 1 }],
    [399, { requests: 0, summed: 0, connections: 1, audit: 1 }],
    [401, { requests: 0, summed: 0, connections: 1, audit: 0 }],
  ] as const) {
    now = start + days * DAY_MS
    await journal.sweep()
    expect({ days, ...(await left()) }).toEqual({ days, ...expected })
  }
  expect(await journal.openSessions()).toEqual([open])
  expect(tablesOf(path)).toEqual([])
})

test('a record past its retention or from the future is counted and not kept', async () => {
  await using place = await openTemporaryJournal()
  const { journal } = place
  const tunnel = 'one'
  journal.request(requestRecord({ tunnel, at: Date.now() - 10 * DAY_MS }))
  journal.request(requestRecord({ tunnel, at: Date.now() + 3 * DAY_MS }))
  journal.request(requestRecord({ tunnel, id: 'no id' }))
  journal.request(requestRecord({ tunnel, status: NaN }))
  await keepRequests(journal, [requestRecord({ tunnel })])
  expect(await journal.requests({ tunnel }, { limit: 10 })).toHaveLength(1)
  expect(journal.dropped()).toBe(4)
})

test('a tunnel whose records were all removed starts from zero', async () => {
  let now = Date.now()
  await using place = await openTemporaryJournal({ now: () => now })
  await keepRequests(place.journal, [requestRecord({ tunnel: 'one', at: now })])
  now += 100 * DAY_MS
  await place.journal.sweep()
  await keepRequests(place.journal, [requestRecord({ tunnel: 'two', at: now }), requestRecord({ tunnel: 'one', at: now })])
  expect((await place.journal.stats('one', { from: 0, to: now + DAY_MS })).requests).toBe(1)
})
