import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { curl, TRANSPORTS } from '../../support/edge/visitor.ts'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { answered, rawBackend } from '../../support/edge/raw-http.ts'
import { freePort } from '../../support/free-port.ts'
import { patient } from '../../support/patience.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'

/** Tunnels with several sessions, some of which refuse channels because their targets are down. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { holdMs: 50, idleUpstreamMs: patient(60_000) } })
const dead = await freePort()
const echo = await rawBackend(answerWithLength)
afterAll(async () => {
  await edge.proxy.close()
  await echo[Symbol.asyncDispose]()
  expect(edge.failures).toEqual([])
})

/** Answers each complete request with the length of its body. */
function answerWithLength(received: string, socket: Socket): void {
  const last = received.slice(received.lastIndexOf(' HTTP/1.1\r\n'))
  const [head = '', body] = last.split('\r\n\r\n')
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
  if (body === undefined || body.length < length) return
  const text = String(body.length)
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
}

/** Creates a tunnel with one session for each target. @param ports ports of the targets, oldest session first */
function tunnel(ports: readonly number[]) {
  const { hostname, host } = edge.serve(freshHostname(), undefined)
  for (const port of ports) edge.sessions.connect(hostname, port)
  return { hostname, host }
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each([
    { does: 'the newest session', ports: [echo.port, dead] },
    { does: 'the oldest session', ports: [dead, echo.port] },
    { does: 'each session but one of ten', ports: [dead, dead, dead, echo.port, dead, dead, dead, dead, dead, dead] },
  ])('no request fails while $does refuses channels', async ({ ports }) => {
    const { host } = tunnel(ports)
    const each = Array.from({ length: 24 }, () => curl(edge, { transport, host }))
    expect((await Promise.all(each)).map(({ status }) => status)).toEqual(Array(24).fill(200))
  })

  test.each([
    { how: 'with a length', args: [] },
    { how: 'in chunks', args: ['-H', 'Transfer-Encoding: chunked'] },
  ])('an upload $how reaches the session that accepts it, complete', async ({ args }) => {
    const body = 'x'.repeat(300_000)
    const { host } = tunnel([echo.port, dead])
    const sized = args.length === 0
    await using chunked = await rawBackend((received, socket) => {
      if (received.endsWith('0\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    const visited = sized ? host : tunnel([chunked.port, dead]).host
    const upload = ['-X', 'POST', '-H', 'Expect:', ...args, '--data-binary', '@-']
    const { status, body: seen } = await curl(edge, { transport, host: visited, args: upload, input: body })
    expect([status, seen]).toEqual([200, sized ? '300000' : 'ok'])
  })

  test('a request that all sessions refuse is 502 upstream_refused, after one try of each', async () => {
    const { host } = tunnel([dead, dead, dead])
    const before = edge.sessions.opened
    const { status, reason } = await curl(edge, { transport, host })
    expect([status, reason, edge.sessions.opened - before]).toEqual([502, 'upstream_refused', 3])
  })
})

test('the edge tries a session that refused once, and not again for later requests', async () => {
  const { host } = tunnel([echo.port, dead])
  const before = edge.sessions.opened
  const request = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
  for (let count = 0; count < 10; count++) expect(await answered(edge.httpPort, request)).toContain('200 OK')
  // One refused channel, and one channel that serves all ten requests.
  expect(edge.sessions.opened - before).toBe(2)
})
