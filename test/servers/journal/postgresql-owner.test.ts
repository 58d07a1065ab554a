import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type JournalServer, startJournalServer } from '../../support/journal/journal-server.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../conformance/journal/records.ts'
import {
  createJournalOwner,
  createPostgresqlReader,
  createPostgresqlWriter,
  type JournalLogin,
} from '../../../journal/postgresql.ts'
import type { RequestRecord } from '../../../journal/port.ts'
import { requestBatch } from '../../../journal/request-text.ts'
import { silent } from '../../support/journal/temporary-journal.ts'
import { createKeeper } from '../../../journal/postgresql/keeper.ts'

const DAY_MS = 86_400_000
const parts = new AsyncDisposableStack()
let server: JournalServer
beforeAll(async () => {
  server = parts.use(await startJournalServer())
})
afterAll(() => parts.disposeAsync())

const batchOf = (record: RequestRecord) => requestBatch([record])
const by = (login: JournalLogin) => ({ login: () => Promise.resolve(login), log: silent })
const owner = () => createJournalOwner(by(server.logins.owner))

test('several operators can migrate the journal at the same time, and repeatedly', async () => {
  const admin = await server.server.client({ database: 'journal' })
  await admin.query('DROP SCHEMA journal CASCADE')
  await Promise.all([1, 2, 3, 4].map(() => owner().migrate({ edge: 'journal_edge', reader: 'journal_reader' })))
  await Promise.all([1, 2, 3, 4].map(() => owner().sweep(Date.now())))
  await owner().migrate({ edge: 'journal_edge', reader: 'journal_reader' })
  await using reader = createPostgresqlReader(by(server.logins.reader))
  expect(await reader.openSessions()).toEqual([])
})

test('a journal of a newer version is rejected and not changed', async () => {
  const admin = await server.server.client({ database: 'journal' })
  await admin.query('UPDATE journal.layout SET version = version + 1')
  await expect(owner().migrate(undefined)).rejects.toMatchObject({ code: 'newer_layout' })
  await admin.query('UPDATE journal.layout SET version = version - 1')
})

test('refused logins of layout 2, which stored them with the connections, are read together with new ones', async () => {
  const admin = await server.server.client({ database: 'journal' })
  const tunnel = randomUUIDv7()
  const refused = () => connectionRecord({ tunnel, type: 'refused' })
  const [before, after] = [refused(), refused()]
  await owner().sweep(Date.now())
  await admin.query('DROP TABLE journal.refusals; ALTER TABLE journal.audit DROP COLUMN hostname')
  await admin.query('UPDATE journal.layout SET version = 2')
  await admin.query(
    `INSERT INTO journal.connections (tunnel, id, at, type, edge, ip, method, session, fingerprint, password, reason)
     VALUES ($1, $2, $3, 'refused', $4, $5, $6, $7, $8, $9, $10)`,
    [
      tunnel,
      before.id,
      before.at,
      before.edge,
      before.clientIp,
      before.authMethod,
      before.sessionId,
      before.keyFingerprint,
      before.passwordId,
      before.reason,
    ],
  )
  await owner().migrate({ edge: 'journal_edge', reader: 'journal_reader' })
  await owner().sweep(Date.now())
  {
    await using edge = createPostgresqlWriter(by(server.logins.edge))
    await edge.connection(after)
  }
  await using reader = createPostgresqlReader(by(server.logins.reader))
  expect(await reader.connections({ tunnel, refused: true }, { limit: 5 })).toEqual([after, before])
  expect(await reader.connections({ tunnel, refused: true }, { limit: 1, before: after.id })).toEqual([before])
  expect(await reader.connections({ tunnel, refused: false }, { limit: 5 })).toEqual([])
})

test('the migration from layout 4 removes edge responses from the sums of response times', async () => {
  const admin = await server.server.client({ database: 'journal' })
  const tunnel = randomUUIDv7()
  await owner().sweep(Date.now())
  await admin.query(
    `INSERT INTO journal.minutes (tunnel, minute, requests, ms, s1, s2, s3, s4, s5, edge, bytes_in, bytes_out, first_at, last_at)
     VALUES ($1, $2, 3, 18, 0, 2, 0, 1, 0, 1, 0, 0, 0, 0)`,
    [tunnel, Math.floor(Date.now() / 60_000)],
  )
  await admin.query('UPDATE journal.layout SET version = 4')
  const roles = { edge: 'journal_edge', reader: 'journal_reader' }
  await owner().migrate(roles)
  await owner().migrate(roles)
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const span = { from: Date.now() - 3_600_000, to: Date.now() + 60_000 }
  expect(await reader.stats(tunnel, span)).toMatchObject({ requests: 3, edgeAnswered: 1, averageResponseTimeMs: 6 })
})

test('records are removed past their retention: requests, then sums and connections, then audit entries; open sessions stay', async () => {
  const [tunnel, namespace] = [randomUUIDv7(), randomUUIDv7()]
  {
    await using edge = createPostgresqlWriter(by(server.logins.edge))
    await using apiserver = createPostgresqlWriter(by(server.logins.reader))
    edge.request(requestRecord({ tunnel }))
    await edge.connection(connectionRecord({ tunnel, type: 'refused' }))
    await edge.connection(connectionRecord({ tunnel }))
    await apiserver.audit(auditRecord({ namespace }))
  }
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const span = { from: Date.now() - 3_600_000, to: Date.now() + 60_000 }
  const left = async () => ({
    requests: (await reader.requests({ tunnel }, { limit: 5 })).length,
    summedUp: (await reader.stats(tunnel, span)).requests,
    connections: (await reader.connections({ tunnel, refused: true }, { limit: 5 })).length,
    audit: (await reader.auditEntries({ namespace }, { limit: 5 })).length,
    open: (await reader.openSessions()).filter((session) => session.tunnel === tunnel).length,
  })
  const all = { requests: 1, summedUp: 1, connections: 2, audit: 1, open: 1 }
  const after = async (days: number) => {
    await owner().sweep(Date.now() + days * DAY_MS)
    return left()
  }
  expect(await after(0)).toEqual(all)
  expect(await after(7)).toEqual(all)
  expect(await after(8)).toEqual({ ...all, requests: 0 })
  expect(await after(90)).toEqual({ ...all, requests: 0 })
  expect(await after(98)).toEqual({ ...all, requests: 0, summedUp: 0, connections: 0 })
  expect(await after(400)).toMatchObject({ audit: 1, open: 1 })
  expect(await after(429)).toMatchObject({ audit: 0, open: 1 })
})

test.each([8, -8])('a sweep uses the clock of the database when the local clock is %i days off', async (days) => {
  const admin = await server.server.client({ database: 'journal' })
  await admin.query('DROP SCHEMA journal CASCADE')
  await owner().migrate({ edge: 'journal_edge', reader: 'journal_reader' })
  const request = requestRecord({ tunnel: randomUUIDv7() })
  await using keeper = createKeeper(() => Promise.resolve(server.logins.edge))
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const sweepWithWrongClock = async () => {
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + days * DAY_MS)
    await owner()
      .sweep()
      .finally(() => clock.mockRestore())
  }
  await sweepWithWrongClock()
  await keeper.keep({ requests: [batchOf(request)], connections: [], audit: [] })
  await sweepWithWrongClock()
  expect(await reader.requests({ tunnel: request.tunnel }, { limit: 5 })).toEqual([request])
})

test('a disconnect of the session’s own edge replaces a presumed edge_lost, in either order', async () => {
  await owner().sweep()
  const tunnel = randomUUIDv7()
  await using edge = createPostgresqlWriter(by(server.logins.edge))
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const records = () => reader.connections({ tunnel, refused: false }, { limit: 20 })
  const [one, two, lost] = [connectionRecord({ tunnel }), connectionRecord({ tunnel }), connectionRecord({ tunnel })]
  const ended = (session: typeof one, reason: string) =>
    connectionRecord({ ...session, type: 'disconnect', reason, id: randomUUIDv7(), durationMs: 1_000 })
  const [presumed, late] = [one, two].map((session) => ended(session, 'edge_lost'))
  const [real, first] = [one, two].map((session) => ended(session, 'client_closed'))
  const gone = ended(lost, 'edge_lost')
  if (!presumed || !late || !real || !first) throw new Error('there are two of each')
  for (const record of [one, two, lost, presumed, gone, first]) await edge.connection(record)
  expect((await records()).map(({ id }) => id)).toContain(presumed.id)
  for (const record of [real, late, real, gone]) await edge.connection(record)
  const left = (await records()).map(({ id }) => id)
  expect(left.toSorted()).toEqual([one, two, lost, gone, real, first].map(({ id }) => id).toSorted())
})

test('makeRoom removes only requests, the oldest day first', async () => {
  await owner().sweep(Date.now())
  const tunnel = randomUUIDv7()
  await using keeper = createKeeper(() => Promise.resolve(server.logins.edge))
  const days = [3, 2, 0].map((age) => requestRecord({ tunnel, at: Date.now() - age * DAY_MS, path: `/${age}` }))
  await keeper.keep({ requests: days.map(batchOf), connections: [JSON.stringify(connectionRecord({ tunnel }))], audit: [] })
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const left = async () => (await reader.requests({ tunnel }, { limit: 5 })).map(({ path }) => path)
  const admin = await server.server.client({ database: 'journal' })
  const { rows } = await admin.query<{ used: string }>('SELECT pg_database_size(current_database()) AS used')
  const used = Number(rows[0]?.used)
  expect(await owner().makeRoom(used + 1_000_000)).toEqual([])
  expect(await owner().makeRoom(used - 1)).toHaveLength(1)
  expect(await left()).toEqual(['/0', '/2'])
  expect(await owner().makeRoom(0)).toHaveLength(2)
  expect(await left()).toEqual([])
  await keeper.keep({ requests: [batchOf(requestRecord({ tunnel, path: '/later' }))], connections: [], audit: [] })
  expect(await left()).toEqual(['/later'])
  expect(await reader.connections({ tunnel, refused: false }, { limit: 5 })).toHaveLength(1)
})

test('makeRoom removes the oldest refused logins, and no connection, when refused logins take the most space', async () => {
  await owner().sweep(Date.now())
  const tunnel = randomUUIDv7()
  await using keeper = createKeeper(() => Promise.resolve(server.logins.edge))
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const refusalsAt = (age: number, count: number) =>
    Array.from({ length: count }, () => connectionRecord({ tunnel, type: 'refused', at: Date.now() - age * DAY_MS }))
  const connected = connectionRecord({ tunnel, at: Date.now() - 30 * DAY_MS })
  const [old, young] = [refusalsAt(20, 1_000), refusalsAt(0, 3_000)]
  const request = requestRecord({ tunnel })
  const connections = [connected, ...old, ...young].map((record) => JSON.stringify(record))
  await keeper.keep({ requests: [batchOf(request)], connections, audit: [] })
  const idsLeft = async () =>
    (await reader.connections({ tunnel, refused: true }, { limit: 10_000 })).map(({ id }) => id).toSorted()
  const idsOf = (records: readonly { readonly id: string }[]) => records.map(({ id }) => id).toSorted()
  expect(await idsLeft()).toEqual(idsOf([connected, ...old, ...young]))
  const admin = await server.server.client({ database: 'journal' })
  const { rows } = await admin.query<{ used: string }>('SELECT pg_database_size(current_database()) AS used')
  expect(await owner().makeRoom(Number(rows[0]?.used) - 1)).toEqual([expect.stringMatching(/^refusals_/)])
  expect(await idsLeft()).toEqual(idsOf([connected, ...young]))
  expect(await reader.requests({ tunnel }, { limit: 5 })).toEqual([request])
  await owner().makeRoom(0)
  expect(await idsLeft()).toEqual([connected.id])
  expect(await reader.connections({ tunnel, refused: false }, { limit: 5 })).toEqual([connected])
})

test('a sweep keeps an expired partition with an open reader and drops all other expired ones', async () => {
  const admin = await server.server.client({ database: 'journal' })
  const today = Math.floor(Date.now() / DAY_MS)
  const partitions = async () =>
    (
      await admin.query<{ name: string }>(
        `SELECT relname AS name FROM pg_class WHERE relname ~ '^(requests|minutes)_[0-9]+$' AND relkind = 'r'`,
      )
    ).rows.map(({ name }) => name)
  await owner().sweep(Date.now())
  const oldest = `requests_${today - 7}`
  await admin.query(`BEGIN; LOCK TABLE journal.${oldest} IN ACCESS SHARE MODE`)
  await expect(owner().sweep(Date.now() + 200 * DAY_MS)).rejects.toMatchObject({ code: '55P03' })
  await admin.query('COMMIT')
  const left = (await partitions()).filter((name) => Number(name.split('_')[1]) < today + 20)
  expect(left).toEqual([oldest])
  await owner().sweep(Date.now())
})

test('a truncated batch is rejected permanently, and later batches are kept', async () => {
  await owner().sweep(Date.now())
  const request = requestRecord({ tunnel: randomUUIDv7() })
  await using keeper = createKeeper(() => Promise.resolve(server.logins.edge))
  const cut = requestBatch([request]).subarray(0, -20)
  await expect(keeper.keep({ requests: [cut], connections: [], audit: [] })).rejects.toMatchObject({ again: false })
  await keeper.keep({ requests: [requestBatch([request])], connections: [], audit: [] })
  await using reader = createPostgresqlReader(by(server.logins.reader))
  expect(await reader.requests({ tunnel: request.tunnel }, { limit: 5 })).toEqual([request])
})

test('edges that ship the same batches concurrently do not deadlock, and each request counts once', async () => {
  await owner().sweep(Date.now())
  const tunnels = Array.from({ length: 10 }, () => randomUUIDv7())
  const batches = Array.from({ length: 16 }, (_, batch) =>
    requestBatch(
      Array.from({ length: 300 }, (_, index) =>
        requestRecord({ tunnel: tunnels[(index * 7 + batch) % 10] ?? '', sourceIp: `10.${batch}.${index >> 8}.${index & 255}` }),
      ),
    ),
  )
  const shipInOrder = async (order: readonly Uint8Array[]) => {
    await using keeper = createKeeper(() => Promise.resolve(server.logins.edge))
    for (const batch of order) await keeper.keep({ requests: [batch], connections: [], audit: [] })
  }
  await Promise.all(
    [batches, batches.toReversed(), batches.slice(8).concat(batches.slice(0, 8)), batches.slice(4)].map(shipInOrder),
  )
  await using reader = createPostgresqlReader(by(server.logins.reader))
  const span = { from: Date.now() - 3_600_000, to: Date.now() + 60_000 }
  const sums = await Promise.all(tunnels.map((tunnel) => reader.stats(tunnel, span)))
  expect(sums.map(({ requests }) => requests)).toEqual(tunnels.map(() => 480))
  const admin = await server.server.client({ database: 'journal' })
  const { rows } = await admin.query(
    'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  expect(rows).toEqual([{ deadlocks: 0 }])
})
