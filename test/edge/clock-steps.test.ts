import { sshClient } from '../support/edge/ssh2-client.ts'
import { once } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Http1Connection } from '../../edge/proxy/http1/http1-connection.ts'
import { PROXY_LIMITS } from '../../edge/proxy/limits.ts'
import { http2Client } from '../support/edge/http2.ts'
import { openMeshFixture, startMeshEdge } from '../support/edge/mesh-edges.ts'
import { DOMAIN, startProxy, selfSigned } from '../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../support/edge/raw-http.ts'
import { settableClock } from '../support/clocks.ts'
import { freshHostname, startSshEdge, temporaryPassword } from '../support/edge/ssh-edge.ts'
import { SOON } from '../support/patience.ts'

// The wall clock changes while the edge serves. Deadlines follow the monotonic clock.

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]
const context = selfSigned(DOMAIN)
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Starts an edge with a tunnel whose backend responds when a test calls `answer`. */
async function start() {
  const clock = settableClock()
  const edge = await startProxy({ contextFor: async () => context, limits: { sweepMs: 5 }, clock })
  let answer: () => void = () => undefined
  const backend = await rawBackend((received, socket) => {
    if (received.lastIndexOf('/now') > received.lastIndexOf('/waits')) socket.write(OK)
    else answer = () => socket.write(OK)
  })
  const { host } = edge.serve('0000000000000001', backend.port)
  onTestFinished(async () => {
    await edge.proxy.close()
    await backend[Symbol.asyncDispose]()
  })
  return {
    ...{ clock, edge, backend, host },
    answer: () => answer(),
    ask: (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    /** Resolves when the edge has checked all deadlines again. */
    swept: async () => {
      const before = clock.reads
      await vi.waitFor(() => expect(clock.reads).toBeGreaterThan(before + 5), SOON)
    },
  }
}

test.each([
  ['an hour ahead', HOUR_MS],
  ['back by an hour', -HOUR_MS],
])('a wall clock set %s loses no response and no connection, and the journal has correct durations', async (_to, ms) => {
  const { edge, clock, backend, host, ask, answer, swept } = await start()
  const kept = rawVisitor(edge.httpPort, ask('/now'))
  await kept.sees('ok')
  await using http2 = http2Client(edge.httpsPort, host)
  expect(await http2.ask([':path', '/now'])).toMatchObject({ status: 200 })
  const at = clock.date()
  const waiting = rawVisitor(edge.httpPort, ask('/waits'))
  await vi.waitFor(() => expect(backend.received.join('')).toContain('/waits'), SOON)

  clock.step(ms)
  await swept()
  clock.pass(700)
  answer()
  await waiting.sees('\r\n\r\n')
  expect(waiting.text()).toContain('200 OK')
  expect(edge.records.at(-1)).toMatchObject({ path: '/waits', status: 200, at, durationMs: 700 })
  kept.socket.write(ask('/now/again'))
  await vi.waitFor(
    () => expect(edge.records.at(-1)).toMatchObject({ path: '/now/again', at: at + ms + 700, durationMs: 0 }),
    SOON,
  )
  expect(await http2.ask([':path', '/now'])).toMatchObject({ status: 200 })
  for (const { socket } of [kept, waiting]) socket.destroy()
})

test('a wall clock set back does not delay deadlines', async () => {
  const { edge, clock, swept } = await start()
  const slow = rawVisitor(edge.httpPort, 'GET / HTTP/1.1\r\nHost')
  const silent = rawVisitor(edge.httpPort)
  await Promise.all([once(silent.socket, 'connect'), swept()])
  clock.step(-HOUR_MS)
  clock.pass(PROXY_LIMITS.headMs)
  await slow.sees('408 Request Timeout')
  clock.pass(PROXY_LIMITS.lingerIdleMs)
  await slow.over
  expect(await silent.over).toBe('')
})

test('the Date of the edge’s responses follows the wall clock', async () => {
  const { edge, clock, host } = await start()
  const unknown = `GET / HTTP/1.1\r\nHost: f${host.slice(1)}\r\n\r\n`
  for (const ms of [0, -HOUR_MS]) {
    clock.step(ms)
    const visitor = rawVisitor(edge.httpPort, unknown)
    await visitor.sees(`Date: ${new Date(clock.date()).toUTCString()}`)
    visitor.socket.destroy()
  }
})

test('a whole edge keeps an idle connection when the wall clock changes', async () => {
  await using fixture = await openMeshFixture()
  await using edge = await startMeshEdge(fixture, 'edge-a')
  const visitor = rawVisitor(edge.ports.http, 'GET /first HTTP/1.1\r\nHost: x\r\n\r\n')
  await visitor.sees('404 Not Found')
  const ticks = vi.spyOn(Http1Connection.prototype, 'tick')
  const late = Date.now() + HOUR_MS
  vi.spyOn(Date, 'now').mockReturnValue(late)
  onTestFinished(() => void vi.restoreAllMocks())
  await vi.waitFor(() => expect(ticks).toHaveBeenCalled(), SOON)
  visitor.socket.write('GET /again HTTP/1.1\r\nHost: x\r\n\r\n')
  await visitor.sees(`Date: ${new Date(late).toUTCString()}`)
  visitor.socket.destroy()
})

/** Whether a login with the password succeeds. */
function canLogIn(port: number, username: string, password: string): Promise<boolean> {
  const client = sshClient()
  return new Promise((resolve) => {
    const settle = (isLoggedIn: boolean) => {
      client.destroy()
      resolve(isLoggedIn)
    }
    client.once('ready', () => settle(true)).once('error', () => settle(false))
    client.connect({ host: '127.0.0.1', port, username, password })
  })
}

test.each([
  ['an hour ahead', HOUR_MS],
  ['back by an hour', -HOUR_MS],
])('a wall clock set %s does not change how long a source is blocked after failed logins', async (_to, ms) => {
  const clock = settableClock()
  await using edge = await startSshEdge({ failedPerSource: 2 }, [], clock)
  const [hostname, { password, routed }] = [freshHostname(), temporaryPassword(2 * HOUR_MS, 'mt_guessable')]
  edge.routes.set(hostname, {}, [routed])
  for (const guess of ['mt_1', 'mt_2']) expect(await canLogIn(edge.port, hostname, guess)).toBe(false)
  clock.step(ms)
  clock.pass(MINUTE_MS - 1)
  expect(await canLogIn(edge.port, hostname, password)).toBe(false)
  clock.pass(1)
  expect(await canLogIn(edge.port, hostname, password)).toBe(true)
})
