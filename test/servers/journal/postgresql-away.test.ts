import { randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type JournalServer, startJournalServer } from '../../support/journal/journal-server.ts'
import { keepRequests } from '../../conformance/journal/test-journal.ts'
import { auditRecord, connectionRecord, requestRecord } from '../../conformance/journal/records.ts'
import type { RequestRecord } from '../../../journal/port.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../../../journal/postgresql.ts'
import { silent } from '../../support/journal/temporary-journal.ts'
import { createKeeper } from '../../../journal/postgresql/keeper.ts'
import { LATER, patient } from '../../support/patience.ts'

const parts = new AsyncDisposableStack()
let server: JournalServer
beforeAll(async () => {
  server = parts.use(await startJournalServer())
})
afterAll(() => parts.disposeAsync())

const UNREACHABLE: JournalLogin = { uri: 'postgresql://nobody:x@127.0.0.1:1/journal?sslmode=disable' }

test('an unavailable journal fails reads with journal_away, and is read again once it is back', async () => {
  let login: JournalLogin | undefined = undefined
  await using reader = createPostgresqlReader({
    login: () => (login ? Promise.resolve(login) : Promise.reject(new Error('no login yet'))),
    log: silent,
  })
  await expect(reader.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  login = UNREACHABLE
  await expect(reader.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  login = server.logins.reader
  const read = () =>
    reader.openSessions().then(
      (sessions) => sessions,
      () => undefined,
    )
  await expect.poll(read, LATER).toEqual([])
  await server.server.crash()
  await expect.poll(read, LATER).toEqual([])
})

test('the error of an unavailable journal contains no password', async () => {
  await using reader = createPostgresqlReader({ login: () => Promise.resolve({ uri: 'no://uri:secret@at all' }), log: silent })
  const error: unknown = await reader.openSessions().catch((error: unknown) => error)
  expect(JSON.stringify([String(error), String(error instanceof Error && error.cause)])).not.toContain('secret')
})

test(
  'followers receive requests after a crash of the server, including requests recorded meanwhile',
  { timeout: patient(240_000) },
  async () => {
    await using reader = createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent })
    await using edge = createPostgresqlWriter({ login: () => Promise.resolve(server.logins.edge), log: silent })
    const keep = (...records: RequestRecord[]) =>
      keepRequests({ ...edge, ...reader, [Symbol.asyncDispose]: () => Promise.resolve() }, records)
    const tunnel = randomUUIDv7()
    const received: string[] = []
    reader.follow(tunnel, ({ path }) => received.push(path))
    await keep(requestRecord({ tunnel, path: '/before' }))
    await expect.poll(() => received).toEqual(['/before'])
    await server.server.crash()
    edge.request(requestRecord({ tunnel, path: '/meanwhile' }))
    await expect.poll(() => received, LATER).toEqual(['/before', '/meanwhile'])
    edge.request(requestRecord({ tunnel, path: '/after' }))
    await expect.poll(() => received, LATER).toEqual(['/before', '/meanwhile', '/after'])
  },
)

test('a changed login replaces the connections of writer and follower', async () => {
  const { edge, reader: changed, owner } = server.logins
  const tunnel = randomUUIDv7()
  let login = edge
  await using keeper = createKeeper(() => Promise.resolve(login), 0)
  const refusal = connectionRecord({ tunnel, type: 'refused' })
  expect(await keeper.keep({ requests: [], connections: [JSON.stringify(refusal)], audit: [] })).toEqual({ refused: 0 })
  login = changed
  const entry = auditRecord({ namespace: 'acme--prod' })
  expect(await keeper.keep({ requests: [], connections: [], audit: [JSON.stringify(entry)] })).toEqual({ refused: 0 })

  const followerRoles = async () => {
    const admin = await server.server.client()
    const { rows } = await admin.query<{ role: string }>(
      `SELECT usename AS role FROM pg_stat_activity WHERE application_name = 'mooring-journal-follow'`,
    )
    return rows.map(({ role }) => role)
  }
  await using reader = createPostgresqlReader({ login: () => Promise.resolve(login), log: silent })
  reader.follow(tunnel, () => undefined)
  await expect.poll(followerRoles, LATER).toEqual(['journal_reader'])
  login = owner
  const search = () => reader.requests({ tunnel }, { limit: 1 })
  await expect
    .poll(async () => {
      await search()
      return followerRoles()
    }, LATER)
    .toEqual(['journal_owner'])
})

test('the identity check reconnects when the server does not respond', { timeout: patient(240_000) }, async () => {
  const { port } = server.server.target
  const lines: Socket[] = []
  await using between = await listening((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const line of [client, upstream]) line.on('error', () => line.destroy())
    client.pipe(upstream).pipe(client)
    lines.push(upstream)
  })
  const uri = server.logins.edge.uri.replace(`:${port}/`, `:${between.port}/`)
  await using keeper = createKeeper(() => Promise.resolve({ uri }))
  const identity = await keeper.identity()
  expect(identity).toMatch(/^[0-9a-f-]{36}$/)
  for (const line of lines) line.unpipe()
  await expect(keeper.identity()).rejects.toThrow('timeout')
  expect(await keeper.identity()).toBe(identity)
  // Closing does not wait for a server that never closes the connection.
  for (const line of lines) line.unpipe()
  await keeper[Symbol.asyncDispose]()
  await expect.poll(() => between.gone()).toBe(2)
})

async function listening(taken: (client: Socket) => void) {
  const clients = new Set<Socket>()
  let gone = 0
  const listener = createServer((client) => {
    clients.add(client)
    client.once('close', () => (gone += 1))
    taken(client)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    gone: () => gone,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}
