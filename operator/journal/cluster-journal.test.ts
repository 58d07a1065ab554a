import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
  server = parts.use(await startPostgres('15', { own: [JOURNAL_DATABASE, 'outside', 'narrow'], tls: certificate }))
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

async function start(outside?: JournalLogin): Promise<Running> {
  const stack = new AsyncDisposableStack()
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
      ...{ store, ca, log: silent, registry: new Registry(), lookMs: 200 },
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

test('on a PostgreSQL outside it makes roles where it may, and has all use the one login where it may not', async () => {
  const admin = await server.client()
  const { host, port } = server.target
  const loginTo = (database: string, role: string): JournalLogin => ({
    ...{ uri: `postgresql://${role}:of-the-outside@${host}:${port}/${database}`, ca: certificate.ca },
  })
  for (const [database, may] of [
    ['outside', 'CREATEROLE'],
    ['narrow', 'NOCREATEROLE'],
  ] as const) {
    await admin.query(`CREATE ROLE ${database}_owner LOGIN ${may} PASSWORD 'of-the-outside'`)
    await admin.query(`CREATE DATABASE ${database} OWNER ${database}_owner`)
  }
  {
    await using running = await start(loginTo('outside', 'outside_owner'))
    await expectToWork(running)
    expect(new URL((await running.loginOf('edge')).uri).username).toBe('mooring_journal_edge')
  }
  await using running = await start(loginTo('narrow', 'narrow_owner'))
  await expectToWork(running)
  expect(await running.loginOf('edge')).toEqual(loginTo('narrow', 'narrow_owner'))
}, 40_000)
