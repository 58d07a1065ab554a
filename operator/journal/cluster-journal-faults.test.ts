import { randomUUIDv7 } from 'node:crypto'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startPostgres, type ThrowAwayPostgres } from '../../test/support/postgres.ts'
import { Namespace, Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { Region } from '../../crds/region.ts'
import { settableCache } from '../../test/support/settable-cache.ts'
import { JOURNAL_DATABASE, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { connectionRecord, requestRecord } from '../../journal/conformance/records.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../../journal/postgresql.ts'
import { silent } from '../../journal/sqlite/open-temporary.ts'
import { openTemporaryStore } from '../../store/embedded/open-temporary.ts'
import type { Store } from '../../store/port.ts'
import { decodeSecret, encodeSecret } from '../secret-data.ts'
import { Pod } from '../kubernetes/kinds.ts'
import { makeCertificate } from '../server/process/process-fixture.ts'
import type { EngineCertificate } from '../server/process/program.ts'
import { createClusterJournal } from './cluster-journal.ts'
import type { OwnServer } from './own-server.ts'

const tunnel = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'
const parts = new AsyncDisposableStack()
let server: ThrowAwayPostgres
let certificate: EngineCertificate

beforeAll(async () => {
  certificate = await makeCertificate()
  server = parts.use(
    await startPostgres('15', { own: [JOURNAL_DATABASE, 'outside', 'another', 'third', 'narrow', 'shared'], tls: certificate }),
  )
})
afterAll(() => parts.disposeAsync())

interface Running extends AsyncDisposable {
  readonly store: Store
  readonly journal: ReturnType<typeof createClusterJournal>
  /** What a user's Secret says, once it is there. */
  loginOf(user: string): Promise<JournalLogin>
  /** Waits for a login to be let in. */
  untilWorks(login: JournalLogin): Promise<void>
}

const neverThere: OwnServer = {
  host: 'nowhere',
  port: 1,
  ensure: () => Promise.resolve(false),
  admin: () => Promise.resolve(undefined),
}

interface Logged {
  readonly details: object
  readonly message: string
}

async function start(outside?: JournalLogin, lines: Logged[] = []): Promise<Running> {
  const stack = new AsyncDisposableStack()
  const keepLine = (details: object, message: string) => void lines.push({ details, message })
  const log = { warn: keepLine, info: keepLine }
  const { store } = stack.use(await openTemporaryStore())
  for (const name of [SYSTEM_NAMESPACE, SHARED_NAMESPACE]) await store.create(Namespace, { metadata: { name } })
  const mine = { namespace: SYSTEM_NAMESPACE, name: 'mine' }
  if (outside)
    await store.create(Secret, { metadata: mine, data: encodeSecret({ uri: outside.uri, 'ca.crt': outside.ca ?? '' }) })
  const { host, port } = server.target
  const ca = () => certificate.ca
  const own: OwnServer = {
    ...{ host, port, ensure: () => Promise.resolve(true) },
    admin: () => Promise.resolve({ ...server.target, ca: certificate.ca }),
  }
  const journal = stack.use(
    createClusterJournal({
      ...{ store, ca, log, registry: new Registry(), lookMs: 200 },
      ...{ regions: settableCache(Region).cache, servers: settableCache(DatabaseServer).cache, dial: 'name' as const },
      server: outside ? neverThere : own,
      outside: outside && 'mine',
    }),
  )
  const stop = new AbortController()
  const running = journal.run(stop.signal)
  stack.defer(async () => {
    stop.abort()
    await running
  })
  const secretOf = (user: string) => store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: `journal-${user}` })
  return {
    store,
    journal,
    async loginOf(user) {
      await expect.poll(() => secretOf(user), { timeout: 15_000 }).toBeDefined()
      const { data = {} } = (await secretOf(user)) ?? {}
      return { uri: decodeSecret(data, 'uri') ?? '', ca: decodeSecret(data, 'ca.crt') }
    },
    async untilWorks(login) {
      await using reader = readerBy(login)
      const look = () =>
        reader.openSessions().then(
          () => true,
          () => false,
        )
      await expect.poll(look, { timeout: 15_000 }).toBe(true)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const readerBy = (login: JournalLogin) => createPostgresqlReader({ login: () => Promise.resolve(login), log: silent })
const writerBy = (login: JournalLogin) => createPostgresqlWriter({ login: () => Promise.resolve(login), log: silent })

/** An edge writes, an API server reads. */
async function expectToWork(running: Running): Promise<void> {
  const [edge, reader] = [await running.loginOf('edge'), await running.loginOf('reader')]
  await running.untilWorks(reader)
  await using writer = writerBy(edge)
  await using reading = readerBy(reader)
  const record = requestRecord({ tunnel })
  writer.request(record)
  await writer.connection(connectionRecord({ tunnel, edge: 'edge-a', type: 'refused' }))
  await expect.poll(() => reading.requests({ tunnel }, { limit: 1 })).toEqual([record])
}

test('a server of Mooring’s own gets database, roles and Secrets; each role may do what it is for, over TLS that is verified', async () => {
  await using running = await start()
  await expectToWork(running)
  const [edge, reader] = [await running.loginOf('edge'), await running.loginOf('reader')]
  expect(edge.uri).toContain('?sslmode=verify-full')
  await using edgeReads = readerBy(edge)
  await expect(edgeReads.openSessions()).rejects.toMatchObject({ code: 'journal_away', cause: { code: '42501' } })
  await using byAnother = readerBy({ ...reader, ca: (await makeCertificate()).ca })
  await expect(byAnother.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  const { password, pathname } = new URL(edge.uri)
  const asEdge = (database: string) => server.client({ user: 'mooring_journal_edge', password, database })
  await expect(asEdge('postgres')).rejects.toMatchObject({ code: '28000' })
  const client = await asEdge(pathname.slice(1))
  await expect(client.query("SELECT journal.keep_audit('[]')")).rejects.toMatchObject({ code: '42501' })
  await expect(client.query('CREATE TABLE public.mine ()')).rejects.toMatchObject({ code: '42501' })
})

test('edges are let in however many there are, on a server too where they were not', async () => {
  {
    await using running = await start()
    await expectToWork(running)
  }
  const admin = await server.client()
  await admin.query('ALTER ROLE mooring_journal_edge CONNECTION LIMIT 100')
  await using running = await start()
  await expect.poll(() => running.journal.openSessions().catch(() => undefined)).toBeDefined()
  const { rows } = await admin.query('SELECT rolconnlimit FROM pg_roles WHERE rolname = $1', ['mooring_journal_edge'])
  expect(rows).toEqual([{ rolconnlimit: -1 }])
})

test('an operator whose clock is eight days ahead drops no request of today', async () => {
  const request = requestRecord({ tunnel: randomUUIDv7() })
  {
    await using running = await start()
    await expectToWork(running)
    await using writer = writerBy(await running.loginOf('edge'))
    writer.request(request)
    // What comes after it is kept after it.
    await writer.connection(connectionRecord({ tunnel, edge: 'edge-gone' }))
  }
  const now = Date.now.bind(Date)
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 8 * 86_400_000)
  onTestFinished(() => clock.mockRestore())
  await using running = await start()
  // Sessions whose edge is gone are ended after the sweep.
  await using writer = writerBy(await running.loginOf('edge'))
  await writer.connection(connectionRecord({ tunnel, edge: 'edge-gone' }))
  await expect.poll(() => running.journal.openSessions(), { timeout: 30_000 }).toEqual([])
  expect(await running.journal.requests({ tunnel: request.tunnel }, { limit: 1 })).toEqual([request])
}, 60_000)

test('a Secret that was deleted comes back with its password; a password that was changed on the server is set right', async () => {
  await using running = await start()
  await expectToWork(running)
  const before = await running.loginOf('reader')
  const admin = await server.client()
  await admin.query(`ALTER ROLE mooring_journal_reader PASSWORD 'changed by hand'`)
  await running.store.delete(Secret, { namespace: SYSTEM_NAMESPACE, name: 'journal-reader' })
  await expect
    .poll(() => running.store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: 'journal-reader' }), { timeout: 15_000 })
    .toBeDefined()
  expect(await running.loginOf('reader')).toEqual(before)
}, 40_000)

test('the sessions of an edge whose pod is gone are ended, once', async () => {
  await using running = await start()
  await expectToWork(running)
  await using writer = writerBy(await running.loginOf('edge'))
  const open = connectionRecord({ tunnel, edge: 'edge-gone' })
  await writer.connection(open)
  const ends = async () =>
    (await running.journal.connections({ tunnel, refused: false }, { limit: 50 })).filter(
      ({ sessionId }) => sessionId === open.sessionId,
    )
  await expect.poll(async () => (await ends()).map(({ type }) => type), { timeout: 15_000 }).toEqual(['disconnect', 'connect'])
  expect((await ends())[0]).toMatchObject({ reason: 'edge_lost', edge: 'edge-gone' })
  expect(await running.journal.openSessions()).toEqual([])
}, 40_000)

test('while the journal can be read but not written, the end of a session waits as one record', async () => {
  const lines: Logged[] = []
  await using running = await start(undefined, lines)
  await expectToWork(running)
  const { store, journal } = running
  const labels = { 'app.kubernetes.io/name': 'mooring-edge' }
  const pod = await store.create(Pod, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'edge-here', labels }, spec: {} })
  await using writer = writerBy(await running.loginOf('edge'))
  const open = connectionRecord({ tunnel, edge: pod.metadata.name })
  await writer.connection(open)
  const holder = await server.client({ database: JOURNAL_DATABASE })
  await holder.query('BEGIN')
  await holder.query('SELECT FROM journal.sessions WHERE session = $1 FOR UPDATE', [open.sessionId])
  await store.delete(Pod, { namespace: SYSTEM_NAMESPACE, name: 'edge-here' })
  const looks = vi.spyOn(store, 'list')
  await expect.poll(() => looks.mock.calls.filter(([kind]) => kind === Pod).length, { timeout: 15_000 }).toBeGreaterThan(3)
  const ended = 'sessions of edges that are gone were ended'
  const before = messages(lines, ended)
  await holder.query('COMMIT')
  await expect.poll(() => messages(lines, ended) - before, { timeout: 15_000 }).toBe(1)
  expect(await journal.openSessions()).toEqual([])
  const records = await journal.connections({ tunnel, refused: false }, { limit: 50 })
  const types = records.filter(({ sessionId }) => sessionId === open.sessionId).map(({ type }) => type)
  expect(types).toEqual(['disconnect', 'connect'])
}, 60_000)

const messages = (lines: readonly Logged[], part: string) => lines.filter(({ message }) => message.includes(part)).length

test('a step that fails keeps no other from being done, and the journal is laid out once', async () => {
  {
    await using running = await start()
    await expectToWork(running)
  }
  const holder = await server.client({ database: JOURNAL_DATABASE })
  await holder.query(`
    SET ROLE mooring_journal_owner;
    CREATE TABLE journal.requests_1 (LIKE journal.requests);
    ALTER TABLE journal.requests ATTACH PARTITION journal.requests_1
      FOR VALUES FROM (journal.lowest_id(86400000)) TO (journal.lowest_id(2 * 86400000))`)
  await holder.query('BEGIN; LOCK TABLE journal.requests_1 IN ACCESS SHARE MODE')
  const lines: Logged[] = []
  await using running = await start(undefined, lines)
  await expect.poll(() => messages(lines, 'is ready'), { timeout: 15_000 }).toBe(1)
  await using writer = writerBy(await running.loginOf('edge'))
  const looks = 3
  for (let look = 0; look < looks; look += 1) {
    const open = connectionRecord({ tunnel, edge: 'edge-gone' })
    await writer.connection(open)
    const types = async () =>
      (await running.journal.connections({ tunnel, refused: false }, { limit: 50 }))
        .filter(({ sessionId }) => sessionId === open.sessionId)
        .map(({ type }) => type)
    await expect.poll(() => types().catch(() => []), { timeout: 15_000 }).toEqual(['disconnect', 'connect'])
  }
  expect([messages(lines, 'is ready'), messages(lines, 'a step in looking after the journal failed')]).toEqual([1, 1])
  expect(lines.find(({ message }) => message.includes('failed'))?.details).toMatchObject({
    step: 'sweep',
    err: { code: '55P03' },
  })
  await holder.query('COMMIT; DROP TABLE journal.requests_1')
}, 60_000)

test('what somebody undoes by hand is done again: a password, a right, the schema', async () => {
  await using running = await start()
  await expectToWork(running)
  const admin = await server.client()
  const inJournal = await server.client({ database: JOURNAL_DATABASE })
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
    await expect.poll(works, { timeout: 15_000 }).toBe(true)
  }
  await running.untilWorks(await running.loginOf('reader'))
}, 60_000)

test('on a PostgreSQL outside it makes roles where it may, and has all use the one login where it may not', async () => {
  const [outside, narrow] = [await databaseOutside('outside', 'CREATEROLE'), await databaseOutside('narrow', 'NOCREATEROLE')]
  {
    await using running = await start(outside)
    await expectToWork(running)
    expect(new URL((await running.loginOf('edge')).uri).username).toMatch(/^mooring_journal_edge_[0-9a-f]{12}$/)
  }
  await using running = await start(narrow)
  await expectToWork(running)
  expect(await running.loginOf('edge')).toEqual(narrow)
}, 40_000)

test('two installations have their journals in two databases of one PostgreSQL; in one database the second is refused', async () => {
  const [one, another] = [await databaseOutside('another', 'CREATEROLE'), await databaseOutside('third', 'CREATEROLE')]
  const lines: Logged[] = []
  await using first = await start(one)
  await expectToWork(first)
  await using second = await start(another)
  await expectToWork(second)
  await expectToWork(first)
  await using third = await start(one, lines)
  await expect.poll(() => lines.map(({ details }) => details)).toMatchObject([{ err: { code: 'journal_taken' } }])
  await expect(third.journal.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  await expectToWork(first)
}, 60_000)

test('who is refused a database hands out no login to it, not even where all use the same', async () => {
  const login = await databaseOutside('shared', 'NOCREATEROLE')
  await using first = await start(login)
  await expectToWork(first)
  const lines: Logged[] = []
  await using second = await start(login, lines)
  await expect.poll(() => lines.map(({ details }) => details)).toMatchObject([{ err: { code: 'journal_taken' } }])
  for (const user of ['owner', 'edge', 'reader'])
    expect(await second.store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: `journal-${user}` })).toBeUndefined()
}, 60_000)

/** A database of a PostgreSQL outside, with an owner who may make roles or not. */
async function databaseOutside(database: string, may: 'CREATEROLE' | 'NOCREATEROLE'): Promise<JournalLogin> {
  const admin = await server.client()
  await admin.query(`CREATE ROLE ${database}_owner LOGIN ${may} PASSWORD 'of-the-outside'`)
  await admin.query(`CREATE DATABASE ${database} OWNER ${database}_owner`)
  const { host, port } = server.target
  return { uri: `postgresql://${database}_owner:of-the-outside@${host}:${port}/${database}`, ca: certificate.ca }
}
