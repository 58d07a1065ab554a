import { randomUUIDv7 } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type JournalServer, startJournalServer } from '../../test/support/journal-server.ts'
import { keepRequests } from '../conformance/place.ts'
import { requestRecord } from '../conformance/records.ts'
import type { RequestRecord } from '../port.ts'
import { createPostgresqlReader, createPostgresqlWriter, type JournalLogin } from '../postgresql.ts'
import { silent } from '../sqlite/open-temporary.ts'

const parts = new AsyncDisposableStack()
let server: JournalServer
beforeAll(async () => {
  server = parts.use(await startJournalServer())
})
afterAll(() => parts.disposeAsync())

const NOBODY: JournalLogin = { uri: 'postgresql://nobody:x@127.0.0.1:1/journal?sslmode=disable' }

test('a journal that is away says so, to whoever asks, and is read again once it is there', async () => {
  let login: JournalLogin | undefined = undefined
  await using reader = createPostgresqlReader({
    login: () => (login ? Promise.resolve(login) : Promise.reject(new Error('no login yet'))),
    log: silent,
  })
  await expect(reader.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  login = NOBODY
  await expect(reader.openSessions()).rejects.toMatchObject({ code: 'journal_away' })
  login = server.logins.reader
  const read = () =>
    reader.openSessions().then(
      (sessions) => sessions,
      () => undefined,
    )
  await expect.poll(read, { timeout: 10_000 }).toEqual([])
  await server.server.crash()
  await expect.poll(read, { timeout: 10_000 }).toEqual([])
})

test('a message of a journal that is away holds no password', async () => {
  await using reader = createPostgresqlReader({ login: () => Promise.resolve({ uri: 'no://uri:secret@at all' }), log: silent })
  const error: unknown = await reader.openSessions().catch((error: unknown) => error)
  expect(JSON.stringify([String(error), String(error instanceof Error && error.cause)])).not.toContain('secret')
})

test('followers go on hearing after the server was gone, of what was kept meanwhile too', async () => {
  await using reader = createPostgresqlReader({ login: () => Promise.resolve(server.logins.reader), log: silent })
  await using edge = createPostgresqlWriter({ login: () => Promise.resolve(server.logins.edge), log: silent })
  const keep = (...records: RequestRecord[]) =>
    keepRequests({ ...edge, ...reader, [Symbol.asyncDispose]: () => Promise.resolve() }, records)
  const tunnel = randomUUIDv7()
  const heard: string[] = []
  reader.follow(tunnel, ({ path }) => heard.push(path))
  await keep(requestRecord({ tunnel, path: '/before' }))
  expect(heard).toEqual(['/before'])
  await server.server.crash()
  edge.request(requestRecord({ tunnel, path: '/meanwhile' }))
  await expect.poll(() => heard, { timeout: 15_000 }).toEqual(['/before', '/meanwhile'])
  edge.request(requestRecord({ tunnel, path: '/after' }))
  await expect.poll(() => heard, { timeout: 15_000 }).toEqual(['/before', '/meanwhile', '/after'])
}, 40_000)
