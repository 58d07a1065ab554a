import { join } from 'node:path'
import { expect, test } from 'vitest'
import { smallDisk } from '../../support/postgresql/disks.ts'
import { keepRequests } from '../../conformance/journal/test-journal.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../conformance/journal/records.ts'
import { openSqliteJournal } from '../../../journal/sqlite.ts'
import { silent } from '../../support/journal/temporary-journal.ts'

const tunnel = 'full'
const path = `/${'x'.repeat(2_000)}`

test('on a full disk acknowledgements wait and requests queue up to a bound, until space is free', async () => {
  await using disk = await smallDisk(8)
  const file = join(disk.dir, 'journal.db')
  const waitingBytes = 1_000_000
  {
    await using journal = await openSqliteJournal({ path: file, log: silent, waitingBytes })
    const first = connectionRecord({ tunnel })
    await journal.connection(first)
    const makeRoom = await disk.fill()
    const waiting = [journal.connection(connectionRecord({ tunnel, sessionId: first.sessionId, type: 'disconnect' }))]
    waiting.push(journal.audit(auditRecord({ namespace: 'n' })))
    const sendMore = () => {
      for (let count = 0; count < 100; count += 1) journal.request(requestRecord({ tunnel, path }))
      return journal.dropped()
    }
    await expect.poll(sendMore, { interval: 10, timeout: 60_000 }).toBeGreaterThan(0)
    const newest = requestRecord({ tunnel, path: '/newest' })
    journal.request(newest)
    expect(await journal.openSessions()).toEqual([first])
    await makeRoom()
    await Promise.all(waiting)
    await keepRequests(journal, [newest])
    expect(await journal.openSessions()).toEqual([])
  }
  await using journal = await openSqliteJournal({ path: file, log: silent })
  expect(await journal.connections({ tunnel, refused: false }, { limit: 10 })).toHaveLength(2)
  const kept = await journal.requests({ tunnel }, { limit: 100_000 })
  expect((await journal.stats(tunnel, { from: 0, to: Date.now() + 60_000 })).requests).toBe(kept.length)
})
