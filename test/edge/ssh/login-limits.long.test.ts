import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, type ConnectConfig } from 'ssh2'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { freshHostname, startSshEdge, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Limits by failed logins of a source. */

const never = new AbortController().signal
const REFUSED = 'All configured authentication methods failed'
const TOO_MANY = sentences.refused('rate')
type SshEdge = Awaited<ReturnType<typeof startSshEdge>>

/** Logs in. @returns `in`, or the error's message */
function logIn(port: number, options: ConnectConfig): Promise<string> {
  const client = new Client()
  return new Promise((resolve) => {
    const settle = (outcome: string) => {
      client.destroy()
      resolve(outcome)
    }
    client.once('ready', () => settle('in')).once('error', ({ message }) => settle(message))
    client.connect({ host: '127.0.0.1', port, ...options })
  })
}

/** Creates a tunnel with a key, a password of the API, and a weak password. */
function newTunnel(edge: SshEdge) {
  const [hostname, issued, weak] = [freshHostname(), temporaryPassword(), temporaryPassword(60_000, 'mt_weak')]
  edge.routes.set(hostname, { authorizedKeys: [edge.publicKey] }, [issued.routed, weak.routed])
  return { hostname, password: issued.password, weak: weak.password, privateKey: readFileSync(edge.file('id')) }
}

test.each([
  ['a tunnel', (hostname: string) => hostname],
  ['unknown users', () => 'nobody'],
])('after 62 failed logins as %s, an address still logs in by key and by a password of the API', async (_whom, userOf) => {
  await using edge = await startSshEdge()
  const { hostname, password, privateKey } = newTunnel(edge)
  for (let count = 0; count < 62; count++) await logIn(edge.port, { username: userOf(hostname), password: `mt_guess-${count}` })
  expect(await logIn(edge.port, { username: hostname, privateKey })).toBe('in')
  expect(await logIn(edge.port, { username: hostname, password })).toBe('in')
  edge.ssh({ user: hostname, args: ['-N', '-R', '80:127.0.0.1:9'] })
  expect(await edge.sessions.waitFor(hostname, SOON.timeout, never)).toBeDefined()
})

test('after too many failures, the edge rejects weak and wrong passwords, and accepts one of the API', async () => {
  await using edge = await startSshEdge({ failedPerSource: 3 })
  const { hostname, weak, password } = newTunnel(edge)
  expect(await logIn(edge.port, { username: hostname, password: weak })).toBe('in')
  for (let count = 0; count < 3; count++)
    expect(await logIn(edge.port, { username: hostname, password: 'mt_guess' })).toBe(REFUSED)
  for (const wrong of [weak, 'mt_guess', `mt_${'x'.repeat(32)}`])
    expect(await logIn(edge.port, { username: hostname, password: wrong })).toContain(TOO_MANY)
  expect(await logIn(edge.port, { username: hostname, password })).toBe('in')
  await vi.waitFor(() => expect(edge.records.filter(({ reason }) => reason === 'rate')).toHaveLength(3), SOON)
})

test('a flood of failed logins is served at a fixed rate, and a valid key of its address logs in meanwhile', async () => {
  await using edge = await startSshEdge({ unfinishedPerSource: 5, slowHandshakesPerSecond: 10 })
  const { hostname, privateKey } = newTunnel(edge)
  let [handshakes, isOver] = [0, false]
  async function guess(): Promise<void> {
    while (!isOver) {
      const client = new Client()
      client.once('handshake', () => (handshakes += 1)).on('error', () => undefined)
      client.connect({ host: '127.0.0.1', port: edge.port, username: hostname, password: 'mt_guess' })
      await new Promise((resolve) => client.once('close', () => resolve(undefined)))
    }
  }
  const guessers = Array.from({ length: 8 }, guess)
  await vi.waitFor(() => expect(handshakes).toBeGreaterThan(5), SOON)
  const [before, began] = [handshakes, performance.now()]
  for (let count = 0; count < 3; count++) expect(await logIn(edge.port, { username: hostname, privateKey })).toBe('in')
  const seconds = (performance.now() - began) / 1_000
  // Plus the handshakes that one tick starts.
  expect(handshakes - before).toBeLessThanOrEqual(Math.ceil(seconds * 10) + 13)
  isOver = true
  await Promise.all(guessers)
})

test('idle connections are closed for a newer one of their address after giveWayMs', async () => {
  await using edge = await startSshEdge({ handshakesPerSource: 4, giveWayMs: 300 })
  const { hostname, privateKey } = newTunnel(edge)
  const idle = Array.from({ length: 4 }, () => connect(edge.port, '127.0.0.1'))
  await Promise.all(idle.map((socket) => once(socket, 'data')))
  expect(await logIn(edge.port, { username: hostname, privateKey })).toContain('too many connections from your address')
  const first = new Promise<string>((resolve) => {
    let text = ''
    idle[0]?.on('data', (data) => (text += data.toString('latin1'))).once('close', () => resolve(text))
  })
  await vi.waitFor(async () => expect(await logIn(edge.port, { username: hostname, privateKey })).toBe('in'), SOON)
  expect(await first).toContain('too many connections from your address')
  for (const socket of idle) socket.destroy()
})

/** Keeps a connection busy without a login. @returns the milliseconds until the edge closes it */
async function closedAfter(socket: Socket, keepBusy: (socket: Socket) => void): Promise<number> {
  const began = performance.now()
  socket.on('error', () => undefined).resume()
  const busy = setInterval(() => keepBusy(socket), 1_000)
  onTestFinished(() => clearInterval(busy))
  await once(socket, 'close')
  return performance.now() - began
}

test('a connection without a login is closed within 20 s, even when it sends data', async () => {
  await using edge = await startSshEdge()
  const begin = () => connect(edge.port, '127.0.0.1')
  const trickling = closedAfter(begin(), (socket) => socket.write('S'))
  const offering = begin()
  offering.write('SSH-2.0-slow\r\n\0\0\x05\0')
  const offered = closedAfter(offering, (socket) => socket.write('\0'))
  const silent = closedAfter(begin(), () => undefined)
  const client = new Client()
  client.on('error', () => undefined)
  const began = performance.now()
  // Sends a login now and then, below the limit of tries.
  client.connect({
    ...{ host: '127.0.0.1', port: edge.port, username: freshHostname(), readyTimeout: 60_000 },
    authHandler: (_left, _partial, next) =>
      void sleep(2_000).then(() => next({ type: 'password', username: 'x', password: 'mt_x' })),
  })
  const asking = new Promise((resolve) => client.once('close', () => resolve(undefined))).then(() => performance.now() - began)
  const times = await Promise.all([trickling, offered, silent, asking])
  expect(Math.max(...times)).toBeLessThan(20_000)
}, 60_000)
