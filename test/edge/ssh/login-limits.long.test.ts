import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { Client, type ConnectConfig } from 'ssh2'
import { afterAll, expect, test, vi } from 'vitest'
import { Connection } from '../../../edge/ssh/connection.ts'
import { DEFAULT_SSH_LIMITS } from '../../../edge/ssh/limits.ts'
import { sentences } from '../../../edge/ssh/sentences.ts'
import { stoppedClock } from '../../support/edge/stopped-clock.ts'
import { socketOf, sshClient } from '../../support/edge/ssh2-client.ts'
import { freshHostname, startSshEdge, temporaryPassword } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Limits by failed logins of a source. */

const never = new AbortController().signal
const REFUSED = 'All configured authentication methods failed'
const TOO_MANY = sentences.refused('rate')
const ticks = vi.spyOn(Connection.prototype, 'tick')
afterAll(() => {
  ticks.mockRestore()
})

/** Resolves when the edge has checked the deadlines of each connection. */
async function swept(): Promise<void> {
  ticks.mockClear()
  await vi.waitFor(() => expect(ticks.mock.calls.length).toBeGreaterThan(4), SOON)
}

type SshEdge = Awaited<ReturnType<typeof startSshEdge>>

/** Logs in. @returns `in`, or the error's message */
function logIn(port: number, options: ConnectConfig): Promise<string> {
  const client = sshClient()
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
      const client = sshClient()
      client.once('handshake', () => (handshakes += 1))
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

test('a connection without a login is closed after loginGraceMs, even when it sends data', async () => {
  const { loginGraceMs } = DEFAULT_SSH_LIMITS
  const clock = stoppedClock()
  await using edge = await startSshEdge()
  const [silent, trickling, offering] = ['', 'SSH-2.0-', 'SSH-2.0-slow\r\n\0\0\x04\x04\x06\x14'].map((first) => {
    const socket = connect(edge.port, '127.0.0.1').on('error', () => undefined)
    socket.write(first)
    return socket
  }) as [Socket, Socket, Socket]
  const asking = new Client()
  asking.on('error', () => undefined)
  const exchanged = once(asking, 'handshake')
  let ask: (() => void) | undefined
  asking.connect({
    ...{ host: '127.0.0.1', port: edge.port, username: freshHostname(), readyTimeout: SOON.timeout },
    authHandler: (_left, _partial, next) => void (ask = () => next({ type: 'password', username: 'x', password: 'mt_x' })),
  })
  await Promise.all([silent, trickling, offering].map((socket) => once(socket, 'data')))
  await exchanged
  let [closed, said] = [0, '']
  silent.on('data', (data) => (said += data.toString('latin1')))
  const closes = [silent, trickling, offering, socketOf(asking)].map((socket) => {
    const over = once(socket.resume(), 'close')
    void over.then(() => (closed += 1))
    return over
  })
  const steps = 4
  for (let step = 1; step <= steps; step++) {
    clock.pass(loginGraceMs / steps)
    trickling.write('S')
    offering.write('\0')
    ask?.()
    ask = undefined
    await swept()
    expect(closed).toBe(0)
  }
  clock.pass(1)
  await vi.waitFor(() => expect(said).toContain(sentences.loginGrace(loginGraceMs)), SOON)
  // The edge ends its side, and closes the connection after a client that does not end its own.
  clock.pass(2_001)
  await Promise.all(closes)
})
