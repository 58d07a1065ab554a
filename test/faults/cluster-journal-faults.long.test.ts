import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { Secret } from '../../crds/core.ts'
import { JOURNAL_DATABASE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { connectionRecord, requestRecord } from '../conformance/journal/records.ts'
import { Pod } from '../../operator/kubernetes/kinds.ts'
import { makeCertificate } from '../support/operator/process-runtime.ts'
import {
  expectToWork,
  type JournalPostgres,
  type Logged,
  messages,
  readerBy,
  recordsOf,
  startJournalPostgres,
  tunnel,
  writerBy,
} from '../support/deployment/cluster-journal.ts'
import { LATER, patient } from '../support/patience.ts'

let postgres: JournalPostgres

beforeAll(async () => {
  postgres = await startJournalPostgres()
})
afterAll(() => postgres[Symbol.asyncDispose]())

/** Log line of an ended session. */
const ENDED = [{ type: 'disconnect' }, { type: 'connect' }]
const FAILED = 'a maintenance step of the journal failed'

test('a server of Mooring’s own gets database, roles and Secrets; each role has only its permissions, over verified TLS', async () => {
  await using running = await postgres.start()
  await expectToWork(running)
  const [edge, reader] = [await running.loginOf('edge'), await running.loginOf('reader')]
  expect(edge.uri).toContain('?sslmode=verify-full')
  await using edgeReads = readerBy(edge)
  await expect(edgeReads.openSessions()).rejects.toMatchObject({ code: 'journal_away', cause: { code: '42501' } })
  await using byAnother = readerBy({ ...reader, ca: (await makeCertificate()).ca })
  await expect(byAnother.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  const { password, pathname } = new URL(edge.uri)
  const asEdge = (database: string) => postgres.server.client({ user: 'mooring_journal_edge', password, database })
  await expect(asEdge('postgres')).rejects.toMatchObject({ code: '28000' })
  const client = await asEdge(pathname.slice(1))
  await expect(client.query("SELECT journal.keep_audit('[]')")).rejects.toMatchObject({ code: '42501' })
  await expect(client.query('CREATE TABLE public.mine ()')).rejects.toMatchObject({ code: '42501' })
})

test('the number of edges is not limited, also on a server that limited it before', async () => {
  {
    await using running = await postgres.start()
    await expectToWork(running)
  }
  const admin = await postgres.server.client()
  await admin.query('ALTER ROLE mooring_journal_edge CONNECTION LIMIT 100')
  await using running = await postgres.start()
  await expect.poll(() => running.journal.openSessions().catch(() => undefined)).toBeDefined()
  const { rows } = await admin.query('SELECT rolconnlimit FROM pg_roles WHERE rolname = $1', ['mooring_journal_edge'])
  expect(rows).toEqual([{ rolconnlimit: -1 }])
})

test('an operator whose clock is eight days ahead drops no request of today', { timeout: patient(240_000) }, async () => {
  const request = requestRecord({ tunnel: randomUUIDv7() })
  {
    await using running = await postgres.start()
    await expectToWork(running)
    await using writer = writerBy(await running.loginOf('edge'))
    writer.request(request)
    // Later records are stored after this one.
    await writer.connection(connectionRecord({ tunnel, edge: 'edge-gone' }))
  }
  const now = Date.now.bind(Date)
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 8 * 86_400_000)
  onTestFinished(() => clock.mockRestore())
  const lines: Logged[] = []
  await using running = await postgres.start(undefined, lines)
  // Lost sessions are ended after the sweep, also after a failed one.
  await using writer = writerBy(await running.loginOf('edge'))
  await writer.connection(connectionRecord({ tunnel, edge: 'edge-gone' }))
  await expect.poll(() => running.journal.openSessions(), LATER).toEqual([])
  expect(messages(lines, FAILED)).toBe(0)
  expect(await running.journal.requests({ tunnel: request.tunnel }, { limit: 1 })).toEqual([request])
})

test(
  'a deleted Secret is restored with its password; a password changed on the server is corrected',
  { timeout: patient(240_000) },
  async () => {
    await using running = await postgres.start()
    await expectToWork(running)
    const before = await running.loginOf('reader')
    const admin = await postgres.server.client()
    await admin.query(`ALTER ROLE mooring_journal_reader PASSWORD 'changed by hand'`)
    await running.store.delete(Secret, { namespace: SYSTEM_NAMESPACE, name: 'journal-reader' })
    await expect
      .poll(() => running.store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: 'journal-reader' }), LATER)
      .toBeDefined()
    expect(await running.loginOf('reader')).toEqual(before)
  },
)

test('the sessions of an edge whose pod is gone are ended, once', { timeout: patient(240_000) }, async () => {
  await using running = await postgres.start()
  await expectToWork(running)
  await using writer = writerBy(await running.loginOf('edge'))
  const open = connectionRecord({ tunnel, edge: 'edge-gone' })
  await writer.connection(open)
  await expect.poll(() => recordsOf(running.journal, open), LATER).toMatchObject(ENDED)
  expect((await recordsOf(running.journal, open))[0]).toMatchObject({ reason: 'edge_lost', edge: 'edge-gone' })
  expect(await running.journal.openSessions()).toEqual([])
})

test(
  'while the journal can be read but not written, the end of a session waits as one record',
  { timeout: patient(240_000) },
  async () => {
    const lines: Logged[] = []
    await using running = await postgres.start(undefined, lines)
    await expectToWork(running)
    const { store, journal } = running
    const labels = { 'app.kubernetes.io/name': 'mooring-edge' }
    const pod = await store.create(Pod, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'edge-here', labels }, spec: {} })
    await using writer = writerBy(await running.loginOf('edge'))
    const open = connectionRecord({ tunnel, edge: pod.metadata.name })
    await writer.connection(open)
    const holder = await postgres.server.client({ database: JOURNAL_DATABASE })
    await holder.query('BEGIN')
    await holder.query('SELECT FROM journal.sessions WHERE session = $1 FOR UPDATE', [open.sessionId])
    await store.delete(Pod, { namespace: SYSTEM_NAMESPACE, name: 'edge-here' })
    const looks = vi.spyOn(store, 'list')
    await expect.poll(() => looks.mock.calls.filter(([kind]) => kind === Pod).length, LATER).toBeGreaterThan(3)
    const ended = 'sessions of edges that are gone were ended'
    const before = messages(lines, ended)
    await holder.query('COMMIT')
    await expect.poll(() => messages(lines, ended) - before, LATER).toBe(1)
    expect(await journal.openSessions()).toEqual([])
    expect(await recordsOf(journal, open)).toMatchObject(ENDED)
  },
)

test('a failing step does not prevent the others, and the tables are created once', { timeout: patient(240_000) }, async () => {
  {
    await using running = await postgres.start()
    await expectToWork(running)
  }
  const holder = await postgres.server.client({ database: JOURNAL_DATABASE })
  await holder.query(`
    SET ROLE mooring_journal_owner;
    CREATE TABLE journal.requests_1 (LIKE journal.requests);
    ALTER TABLE journal.requests ATTACH PARTITION journal.requests_1
      FOR VALUES FROM (journal.lowest_id(86400000)) TO (journal.lowest_id(2 * 86400000))`)
  await holder.query('BEGIN; LOCK TABLE journal.requests_1 IN ACCESS SHARE MODE')
  const lines: Logged[] = []
  await using running = await postgres.start(undefined, lines)
  await expect.poll(() => messages(lines, 'is ready'), LATER).toBe(1)
  await using writer = writerBy(await running.loginOf('edge'))
  const looks = 3
  for (let look = 0; look < looks; look += 1) {
    const open = connectionRecord({ tunnel, edge: 'edge-gone' })
    await writer.connection(open)
    await expect.poll(() => recordsOf(running.journal, open).catch(() => []), LATER).toMatchObject(ENDED)
  }
  expect([messages(lines, 'is ready'), messages(lines, FAILED)]).toEqual([1, 1])
  expect(lines.find(({ message }) => message.includes('failed'))?.details).toMatchObject({
    step: 'sweep',
    err: { code: '55P03' },
  })
  await holder.query('COMMIT; DROP TABLE journal.requests_1')
})

test('a password, a privilege or the schema changed by hand is restored', { timeout: patient(240_000) }, async () => {
  await using running = await postgres.start()
  await expectToWork(running)
  const admin = await postgres.server.client()
  const inJournal = await postgres.server.client({ database: JOURNAL_DATABASE })
  const hangUp = () =>
    admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mooring_journal_owner'`)
  const works = () =>
    running.journal.openSessions().then(
      () => true,
      () => false,
    )
  for (const undo of [
    () => admin.query(`ALTER ROLE mooring_journal_owner PASSWORD 'changed by hand'`),
    () => inJournal.query('DROP SCHEMA journal CASCADE'),
  ]) {
    await undo()
    await hangUp()
    await expect.poll(works).toBe(false)
    await expect.poll(works, LATER).toBe(true)
  }
  await running.expectLogin(await running.loginOf('reader'))
})
