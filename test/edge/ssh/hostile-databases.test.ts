import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { ClientChannel } from 'ssh2'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  channelTo,
  DATABASE_PORT as PORT,
  logInTo as logInAt,
  newDatabase as databaseAt,
} from '../../support/edge/database-logins.ts'
import { startBackend, startSshEdge } from '../../support/edge/ssh-edge.ts'
import { sendMessage } from '../../support/edge/ssh2-client.ts'

/** Clients of a database that break the protocol, open too much, or do not read. */

const SOON = { timeout: 60_000, interval: 20 }
const MIB = 1024 * 1024
/** Channels of a session, and connections to a database, in this file. */
const CHANNELS = 100
const CONNECTIONS = 150

let edge: Awaited<ReturnType<typeof startSshEdge>>
let server: Awaited<ReturnType<typeof startBackend>>
const accepted: Socket[] = []
/** Handling of a connection to the database server. */
let serve: (socket: Socket) => void = (socket) => socket.pipe(socket)
beforeAll(async () => {
  edge = await startSshEdge({ channels: CHANNELS, connectionsPerDatabase: CONNECTIONS, keepaliveMs: 60_000 })
  server = await startBackend((socket) => {
    accepted.push(socket)
    serve(socket)
  })
})
afterAll(async () => {
  await edge[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

const newDatabase = () => databaseAt(edge, server.port)
const logInTo = (hostname: string) => logInAt(edge, hostname)

async function echoOf(channel: ClientChannel, text: string): Promise<string> {
  channel.write(text)
  const [data] = (await once(channel, 'data')) as [Buffer]
  return data.toString()
}

const live = () => accepted.filter((socket) => !socket.destroyed).length

const text = (value: string): Buffer => Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)])
const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** SSH_MSG_CHANNEL_OPEN of a channel to the database. */
const opening = (id: number, maxPacket = 32_768) =>
  Buffer.concat([
    ...[Buffer.of(90), text('direct-tcpip'), number(id), number(MIB), number(maxPacket)],
    ...[text('db'), number(PORT), text('127.0.0.1'), number(1)],
  ])

describe('limits', () => {
  test('a session has its number of channels, and freed ones can be opened again', async () => {
    using hostile = await logInTo(newDatabase())
    const results = await Promise.allSettled(Array.from({ length: CHANNELS + 20 }, () => channelTo(hostile)))
    const open = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    expect(open).toHaveLength(CHANNELS)
    const [refused] = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))
    expect(refused).toContain('too many open connections to this database')
    for (const channel of open) channel.close()
    await vi.waitFor(() => expect(live()).toBe(0), SOON)
    expect(await echoOf(await channelTo(hostile), 'again')).toBe('again')
  })

  test('a database has its number of connections, over all sessions, and others are served', async () => {
    const hostname = newDatabase()
    using one = await logInTo(hostname)
    using two = await logInTo(hostname)
    const all = [one, two].flatMap((login) => Array.from({ length: CHANNELS }, () => channelTo(login)))
    const results = await Promise.allSettled(all)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(CONNECTIONS)
    using other = await logInTo(newDatabase())
    expect(await echoOf(await channelTo(other), 'served')).toBe('served')
    one.client.destroy()
    await vi.waitFor(() => expect(live()).toBeLessThanOrEqual(CHANNELS + 1), SOON)
    await vi.waitFor(async () => expect(await echoOf(await channelTo(two), 'free').catch(String)).not.toBe(''), SOON)
  })

  test('a channel with tiny packets is refused', async () => {
    using hostile = await logInTo(newDatabase())
    const before = accepted.length
    sendMessage(hostile.client, opening(77, 1))
    expect(await echoOf(await channelTo(hostile), 'fine')).toBe('fine')
    expect(accepted.length).toBe(before + 1)
  })
})

describe('messages about a channel that is not confirmed end the connection:', () => {
  const about = (type: number, ...rest: Buffer[]) => Buffer.concat([Buffer.of(type), number(0), ...rest])
  test.each([
    ['data', about(94, text('SELECT 1'))],
    ['extended data', about(95, number(1), text('x'))],
    ['more window', about(93, number(MIB))],
    ['end of data', about(96)],
    ['close', about(97)],
    ['a request', about(98, text('exec'), Buffer.of(1), text('id'))],
    ['a confirmation', about(91, number(5), number(MIB), number(32_768))],
    ['a refusal', about(92, number(1), text(''), text(''))],
  ])('%s', async (_name, message) => {
    using hostile = await logInTo(newDatabase())
    sendMessage(hostile.client, opening(5))
    sendMessage(hostile.client, message)
    await hostile.gone
    await vi.waitFor(() => expect(live()).toBe(0), SOON)
  })
})

test('a client that leaves while its connection is being made leaves none', async () => {
  for (let time = 0; time < 20; time++) {
    using hostile = await logInTo(newDatabase())
    for (let id = 0; id < 20; id++) sendMessage(hostile.client, opening(id))
    hostile.client.destroy()
    await hostile.gone
  }
  await vi.waitFor(() => expect(live()).toBe(0), SOON)
})

test('a client that does not read stops the server, and its other channels go on', async () => {
  let sent = 0
  const flood = (socket: Socket): void => {
    const chunk = Buffer.alloc(64 * 1024)
    const more = () => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', () => {
      sent += chunk.length
      more()
    })
    more()
  }
  serve = (socket) => socket.once('data', (first: Buffer) => (first.toString() === 'flood' ? flood(socket) : socket.write(first)))
  using hostile = await logInTo(newDatabase())
  const stalled = await channelTo(hostile)
  stalled.write('flood')
  let before = -1
  await vi.waitFor(
    () => {
      const now = sent
      const isStill = now > 0 && now === before
      before = now
      expect(isStill).toBe(true)
    },
    { ...SOON, interval: 200 },
  )
  expect(sent).toBeLessThan(16 * MIB)
  expect(await echoOf(await channelTo(hostile), 'other')).toBe('other')
  const at = sent
  stalled.resume()
  await vi.waitFor(() => expect(sent).toBeGreaterThan(at + 16 * MIB), SOON)
})

test('a server that does not read stops the client', async () => {
  serve = (socket) => socket.pause()
  using client = await logInTo(newDatabase())
  const channel = await channelTo(client)
  const chunk = Buffer.alloc(256 * 1024)
  let written = 0
  const write = () => {
    while (written < 256 * MIB && channel.write(chunk)) written += chunk.length
  }
  channel.on('drain', write)
  write()
  let before = -1
  await vi.waitFor(
    () => {
      const isStill = written === before
      before = written
      expect(isStill).toBe(true)
    },
    { ...SOON, interval: 200 },
  )
  expect(written).toBeLessThan(32 * MIB)
})
