import { Registry } from 'prom-client'
import { expect } from 'vitest'
import { Namespace, Secret } from '../../../crds/core.ts'
import { DatabaseServer } from '../../../crds/database-server.ts'
import { JOURNAL_DATABASE, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { Region } from '../../../crds/region.ts'
import { connectionRecord, requestRecord } from '../../conformance/journal/records.ts'
import type { ConnectionRecord, Journal } from '../../../journal/port.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../../../journal/postgresql.ts'
import { silent } from '../journal/temporary-journal.ts'
import { openTemporaryStore } from '../store/temporary-store.ts'
import type { Store } from '../../../store/port.ts'
import { decodeSecret, encodeSecret } from '../../../operator/secret-data.ts'
import { makeCertificate } from '../operator/process-runtime.ts'
import type { EngineCertificate } from '../../../operator/server/process/programs/program.ts'
import { type ClusterJournal, createClusterJournal } from '../../../operator/journal/cluster-journal.ts'
import type { OwnServer } from '../../../operator/journal/own-server.ts'
import { startPostgres, type ThrowAwayPostgres } from '../postgresql/postgres.ts'
import { settableCache } from '../store/caches.ts'
import { LATER } from '../patience.ts'

/** Uid of the tunnel of most records. */
export const tunnel = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'

/** PostgreSQL with TLS, as Mooring's own server or as an outside one. */
export interface JournalPostgres extends AsyncDisposable {
  readonly server: ThrowAwayPostgres
  readonly certificate: EngineCertificate
  /**
   * Starts a journal with its own store, maintained until it is disposed. `outside` is the login of the server that holds the
   * journal; default: `server`.
   */
  start(outside?: JournalLogin, lines?: Logged[]): Promise<Running>
}

export interface Running extends AsyncDisposable {
  readonly store: Store
  readonly journal: ClusterJournal
  /** Returns the login in a user's Secret, once the Secret exists. */
  loginOf(user: string): Promise<JournalLogin>
  /** Waits until a login is accepted. */
  expectLogin(login: JournalLogin): Promise<void>
}

export interface Logged {
  readonly details: object
  readonly message: string
}

/** Counts the lines whose message includes `part`. */
export const messages = (lines: readonly Logged[], part: string): number =>
  lines.filter(({ message }) => message.includes(part)).length

export const readerBy = (login: JournalLogin) => createPostgresqlReader({ login: () => Promise.resolve(login), log: silent })
export const writerBy = (login: JournalLogin) => createPostgresqlWriter({ login: () => Promise.resolve(login), log: silent })

/** Returns the records of a session, newest first. */
export async function recordsOf(journal: Journal, { sessionId }: ConnectionRecord): Promise<readonly ConnectionRecord[]> {
  const records = await journal.connections({ tunnel, refused: false }, { limit: 50 })
  return records.filter((record) => record.sessionId === sessionId)
}

/** Expects that an edge can write and an API server can read. */
export async function expectToWork(running: Running): Promise<void> {
  const [edge, reader] = [await running.loginOf('edge'), await running.loginOf('reader')]
  await running.expectLogin(reader)
  await using writer = writerBy(edge)
  await using reading = readerBy(reader)
  const record = requestRecord({ tunnel })
  writer.request(record)
  await writer.connection(connectionRecord({ tunnel, edge: 'edge-a', type: 'refused' }))
  await expect.poll(() => reading.requests({ tunnel }, { limit: 1 })).toEqual([record])
}

const neverThere: OwnServer = {
  host: 'nowhere',
  port: 1,
  ensure: () => Promise.resolve(false),
  admin: () => Promise.resolve(undefined),
}

/** Starts a PostgreSQL for journals. Any role may connect to `databases`, but not to the database of Mooring's own journal. */
export async function startJournalPostgres(databases: readonly string[] = []): Promise<JournalPostgres> {
  const certificate = await makeCertificate()
  const server = await startPostgres('15', { own: [JOURNAL_DATABASE, ...databases], tls: certificate })
  return {
    server,
    certificate,
    start: (outside, lines = []) => start({ server, certificate, outside, lines }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

interface Start {
  readonly server: ThrowAwayPostgres
  readonly certificate: EngineCertificate
  readonly outside: JournalLogin | undefined
  readonly lines: Logged[]
}

async function start({ server, certificate, outside, lines }: Start): Promise<Running> {
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
      ...{ store, ca, log, registry: new Registry(), intervalMs: 200 },
      adminCertificate: () => Promise.reject(new Error('the server here is another')),
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
      await expect.poll(() => secretOf(user), LATER).toBeDefined()
      const { data = {} } = (await secretOf(user)) ?? {}
      return { uri: decodeSecret(data, 'uri') ?? '', ca: decodeSecret(data, 'ca.crt') }
    },
    async expectLogin(login) {
      await using reader = readerBy(login)
      const isAccepted = () =>
        reader.openSessions().then(
          () => true,
          () => false,
        )
      await expect.poll(isAccepted, LATER).toBe(true)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
