import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { ClientChannel } from 'ssh2'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { socketQueues } from '../../support/edge/attack-tools.ts'
import { channelTo, logInTo as logInAt, newDatabase as databaseAt } from '../../support/edge/database-logins.ts'
import { startBackend, startSshEdge } from '../../support/edge/ssh-edge.ts'
import type { LoggedIn } from '../../support/edge/ssh2-client.ts'

/** Ends of connections to a database server that does not read: a session that sleeps, for example. */

const SOON = { timeout: 60_000, interval: 50 }
const KIB = 1024
const MIB = 1024 * KIB
/** Connections to a database in this file. */
const CONNECTIONS = 2
/** Time for a server to take the last bytes of a closed channel. */
const CLOSE_MS = 1_500

let edge: Awaited<ReturnType<typeof startSshEdge>>
/** Connection to the server, which reads nothing before `resume`. */
interface Accepted {
  readonly socket: Socket
  /** Bytes that the server has read. */
  read: number
  /** `end`, or the code of the error. */
  ended: string | undefined
}
beforeAll(async () => {
  edge = await startSshEdge({ connectionsPerDatabase: CONNECTIONS, databaseCloseMs: CLOSE_MS, keepaliveMs: 60_000 })
})
afterAll(async () => {
  await edge[Symbol.asyncDispose]()
})

/** Starts a server for one test, and returns the hostname of its database and all connections that it accepts. */
async function newDatabase(): Promise<{ hostname: string; accepted: readonly Accepted[] }> {
  const accepted: Accepted[] = []
  const server = await startBackend((socket) => {
    const connection: Accepted = { socket, read: 0, ended: undefined }
    accepted.push(connection)
    socket.on('data', (data: Buffer) => (connection.read += data.length))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => (connection.ended = code))
    socket.on('end', () => {
      connection.ended = 'end'
      socket.end()
    })
    socket.pause()
  })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const hostname = databaseAt(edge, server.port)
  return { hostname, accepted }
}

const logInTo = (hostname: string) => logInAt(edge, hostname)

/** Returns the bytes of a connection that are in the buffers of the system, in both directions. */
async function inSystem(port: number): Promise<number> {
  const queues = (await socketQueues()).filter(({ localPort, remotePort }) => localPort === port || remotePort === port)
  return queues.reduce((sum, { toSend, received }) => sum + toSend + received, 0)
}

/**
 * Opens a channel and writes until the system takes nothing more: bytes of the client then wait in the edge. The client itself buffers 2 MiB,
 * so the bytes that it accepts do not show whether some are still on their way.
 */
async function fill(login: LoggedIn, accepted: readonly Accepted[]): Promise<ClientChannel> {
  const count = accepted.length
  const channel = await channelTo(login)
  await vi.waitFor(() => expect(accepted).toHaveLength(count + 1), SOON)
  const port = accepted[count]?.socket.remotePort ?? 0
  const chunk = Buffer.alloc(256 * KIB)
  let written = 0
  const write = () => {
    for (let more = true; more && written < 64 * MIB; written += chunk.length) more = channel.write(chunk)
  }
  channel.on('drain', write)
  write()
  /** Bytes in the system at the last check, and the number of checks in a row without a change. */
  let [before, still] = [0, 0]
  await vi.waitFor(
    async () => {
      const now = await inSystem(port)
      still = channel.writableLength > 0 && now > 0 && now === before ? still + 1 : 0
      before = now
      expect(still).toBe(4)
    },
    { ...SOON, interval: 200 },
  )
  channel.off('drain', write)
  return channel
}

async function close(channel: ClientChannel): Promise<void> {
  channel.resume()
  const closed = once(channel, 'close')
  channel.close()
  await closed
}

/** Fills as many channels as the database may have connections, then closes them together: the edge keeps each for a while. */
async function closeAllUnread(login: LoggedIn, accepted: readonly Accepted[]): Promise<void> {
  const channels: ClientChannel[] = []
  while (channels.length < CONNECTIONS) channels.push(await fill(login, accepted))
  await Promise.all(channels.map(close))
}

/** Opens one channel more than the database may have, and returns how many were opened. */
async function opened(login: LoggedIn): Promise<number> {
  const results = await Promise.allSettled(Array.from({ length: CONNECTIONS + 1 }, () => channelTo(login)))
  const channels = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  for (const channel of channels) channel.close()
  return channels.length
}

/** Lets the server read, and waits until these connections have ended in this way. Returns the bytes read. */
async function readAll(connections: readonly Accepted[], end: string): Promise<number> {
  for (const { socket } of connections) socket.resume()
  await vi.waitFor(() => expect(connections.map(({ ended }) => ended)).toEqual(connections.map(() => end)), SOON)
  return connections.reduce((sum, connection) => sum + connection.read, 0)
}

test('connections of closed channels end when the database is deleted, and the server gets nothing more of them', async () => {
  const { hostname, accepted } = await newDatabase()
  const login = await logInTo(hostname)
  await closeAllUnread(login, accepted)
  expect(accepted).toHaveLength(CONNECTIONS)
  edge.routes.delete(hostname)
  await login.gone
  // The kernel of the server's side had received some of it before.
  expect(await readAll(accepted, 'ECONNRESET')).toBeLessThan(CONNECTIONS * 512 * KIB)
})

test('connections of closed channels end with the session, and each gives its slot back once', async () => {
  const { hostname, accepted } = await newDatabase()
  const login = await logInTo(hostname)
  await closeAllUnread(login, accepted)
  login.client.destroy()
  await login.gone
  using next = await logInTo(hostname)
  await vi.waitFor(() => expect(edge.sessions.of(hostname)).toHaveLength(1), SOON)
  expect(await opened(next)).toBe(CONNECTIONS)
})

test('connections of closed channels end after a while although the session goes on, and each gives its slot back once', async () => {
  const { hostname, accepted } = await newDatabase()
  const started = performance.now()
  using login = await logInTo(hostname)
  await closeAllUnread(login, accepted)
  expect(await opened(login)).toBe(0)
  await vi.waitFor(async () => expect(await opened(login)).toBe(CONNECTIONS), SOON)
  expect(performance.now() - started).toBeGreaterThan(CLOSE_MS)
  await readAll(accepted.slice(0, CONNECTIONS), 'ECONNRESET')
})

test('a server that reads in time gets the bytes of a closed channel, and their end', async () => {
  const { hostname, accepted } = await newDatabase()
  using login = await logInTo(hostname)
  await close(await fill(login, accepted))
  expect(await readAll(accepted, 'end')).toBeGreaterThan(2 * MIB)
})
