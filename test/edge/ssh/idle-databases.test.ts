import { once } from 'node:events'
import type { ClientChannel } from 'ssh2'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { channelTo, logInTo, newDatabase } from '../../support/edge/database-logins.ts'
import { startBackend, startSshEdge } from '../../support/edge/ssh-edge.ts'
import type { LoggedIn } from '../../support/edge/ssh2-client.ts'

/** Clients of a database that have no channel to it. Each test compares one with a client that logged in earlier and has a channel. */

let server: Awaited<ReturnType<typeof startBackend>>
beforeAll(async () => {
  server = await startBackend((socket) => socket.pipe(socket))
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
})

async function echoOf(channel: ClientChannel, text: string): Promise<string> {
  channel.write(text)
  const [data] = (await once(channel, 'data')) as [Buffer]
  return data.toString()
}

/** Requests a remote forward, and returns the client's error. */
const forwardOf = ({ client }: LoggedIn): Promise<string> =>
  new Promise((resolve) => {
    client.forwardIn('localhost', 80, (error) => resolve(String(error)))
  })

/** Logs in, holds a channel, then runs `work` with a second client until that is disconnected. Returns the reason in the journal. */
async function lonely(limits: Parameters<typeof startSshEdge>[0], work: (login: LoggedIn) => Promise<unknown>): Promise<string> {
  await using edge = await startSshEdge({ keepaliveMs: 60_000, ...limits })
  const hostname = newDatabase(edge, server.port)
  using busy = await logInTo(edge, hostname)
  await work(busy)
  const channel = await channelTo(busy)
  using idle = await logInTo(edge, hostname)
  await work(idle)
  await idle.gone
  expect(await echoOf(channel, 'SELECT 1')).toBe('SELECT 1')
  expect(await forwardOf(busy)).toContain('Unable to bind')
  expect(await echoOf(channel, 'SELECT 2')).toBe('SELECT 2')
  return edge.records.flatMap(({ reason }) => reason ?? []).join()
}

test('a login without a channel ends after the idle time, and one with a channel goes on', async () => {
  expect(await lonely({ databaseIdleMs: 600 }, () => Promise.resolve())).toBe('idle')
})

test('a login that asked for a remote forward and opens no channel ends, and one with a channel goes on', async () => {
  const rejected = async (login: LoggedIn) => expect(await forwardOf(login)).toContain('Unable to bind')
  expect(await lonely({ rejectedForwardMs: 600 }, rejected)).toBe('forward_refused')
})
