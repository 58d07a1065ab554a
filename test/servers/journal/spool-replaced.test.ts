import { randomUUIDv7 } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { readableJournal, temporarySpool } from '../../support/journal/journal-server.ts'
import { connectionRecord } from '../../conformance/journal/records.ts'
import { createJournalOwner } from '../../../journal/postgresql.ts'
import { LATER, patient } from '../../support/patience.ts'

const SEVERAL_CHECKS_MS = 500

test('onReplaced reports a new journal once, and no outage or repeated migration', { timeout: patient(240_000) }, async () => {
  await using journal = await readableJournal()
  await using temporary = await temporarySpool()
  const { server, logins } = journal.server
  const owner = createJournalOwner({ login: () => Promise.resolve(logins.owner) })
  const migrate = async () => {
    await owner.migrate({ edge: 'journal_edge', reader: 'journal_reader' })
    await owner.sweep()
  }
  await temporary.setLogin(logins.edge)
  await using spool = await temporary.open({ identityCheckMs: 50 })
  const [first, second] = [connectionRecord({ tunnel: randomUUIDv7() }), connectionRecord({ tunnel: randomUUIDv7() })]
  const open = () => journal.reader.openSessions().catch(() => undefined)
  const reportConnections = vi.fn(() => void spool.connection(first))
  spool.onReplaced(reportConnections)

  await spool.connection(first)
  await spool.shipped(patient(10_000))
  await server.crash()
  await migrate()
  await spool.connection(second)
  await spool.shipped(patient(10_000))
  await expect.poll(open, LATER).toHaveLength(2)
  await setTimeout(SEVERAL_CHECKS_MS)
  expect(reportConnections).not.toHaveBeenCalled()

  // The spool ships no record meanwhile and stays connected, so only the identity check can detect the new journal.
  const admin = await server.client({ database: 'journal' })
  await admin.query('DROP SCHEMA journal CASCADE')
  await migrate()
  await expect.poll(open, LATER).toEqual([first])
  await setTimeout(SEVERAL_CHECKS_MS)
  expect(reportConnections).toHaveBeenCalledTimes(1)
})
