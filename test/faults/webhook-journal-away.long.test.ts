import { expect, test } from 'vitest'
import { createPostgresqlReader } from '../../journal/postgresql.ts'
import { connectionRecord } from '../conformance/journal/records.ts'
import { startJournalServer, temporarySpool } from '../support/journal/journal-server.ts'
import { silent } from '../support/journal/temporary-journal.ts'
import { openDelivering } from '../support/webhooks/delivering.ts'
import { startReceiver } from '../support/webhooks/receiver.ts'

/** Edge and operator pause between their attempts to reach the server. */
const LONG = { timeout: 120_000 }

test('events of an edge reach a webhook once each, in order, though PostgreSQL crashes before, between and after them', async () => {
  await using parts = new AsyncDisposableStack()
  const { server, logins } = parts.use(await startJournalServer())
  const ofEdge = parts.use(await temporarySpool())
  await ofEdge.setLogin(logins.edge)
  const spool = parts.use(await ofEdge.open())
  const journal = parts.use(createPostgresqlReader({ login: () => Promise.resolve(logins.owner), log: silent }))
  const at = parts.use(await parts.use(await openDelivering()).scope())
  const receiver = parts.use(await startReceiver())
  const webhook = await at.subscribe(`http://127.0.0.1:${receiver.port}/`)
  at.start({ outbox: journal.webhooks })

  const ids: string[] = []
  for (let round = 0; round < 4; round++) {
    const session = connectionRecord({ tunnel: at.uid })
    const end = connectionRecord({ ...session, type: 'disconnect', reason: 'client_closed', durationMs: 1 })
    for (const record of [session, { ...end, id: connectionRecord({ tunnel: at.uid }).id }]) {
      ids.push(record.id)
      await spool.connection(record)
      if (round % 2 === 1) await server.crash()
    }
  }
  await expect.poll(() => new Set(receiver.bodies().map(({ id }) => id)), LONG).toEqual(new Set(ids))
  const pending = async () =>
    (await journal.webhooks.list(webhook.metadata.uid, { limit: 50 })).filter(({ status }) => status !== 'delivered')
  await expect.poll(pending, LONG).toEqual([])
  expect(await journal.webhooks.list(webhook.metadata.uid, { limit: 50 })).toHaveLength(ids.length)
  const order = new Map<string, number>()
  for (const { data } of receiver.bodies()) {
    expect(data.sequence).toBeGreaterThanOrEqual(order.get(data.sessionId) ?? 0)
    order.set(data.sessionId, data.sequence)
  }
})
