import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { curl, TRANSPORTS } from '../../support/edge/curl.ts'
import { DOMAIN, startProxy } from '../../support/edge/proxy-fixture.ts'
import { answered, rawBackend } from '../../support/edge/raw-http.ts'
import { selfSigned } from '../../support/edge/self-signed.ts'
import { freePort } from '../../support/free-port.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'

/** A tunnel with several sessions, of which some refuse channels: their targets are down. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { holdMs: 50 } })
const dead = await freePort()
const echo = await rawBackend(answerWithLength)
afterAll(async () => {
  await edge.proxy.close()
  await echo[Symbol.asyncDispose]()
  expect(edge.failures).toEqual([])
})

/** Answers each request, once it is whole, with the length of its body. */
function answerWithLength(received: string, socket: Socket): void {
  const last = received.slice(received.lastIndexOf(' HTTP/1.1\r\n'))
  const [head = '', body] = last.split('\r\n\r\n')
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
  if (body === undefined || body.length < length) return
  const text = String(body.length)
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
}

/** Ports of the targets, of the oldest session first. */
function tunnel(ports: readonly number[]) {
  const { hostname, host } = edge.serve(freshHostname(), undefined)
  for (const port of ports) edge.sessions.connect(hostname, port)
  return { hostname, host }
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each([
    { does: 'the newest', ports: [echo.port, dead] },
    { does: 'the oldest', ports: [dead, echo.port] },
    { does: 'all but one of ten', ports: [dead, dead, dead, echo.port, dead, dead, dead, dead, dead, dead] },
  ])('no request fails while $does refuses', async ({ ports }) => {
    const { host } = tunnel(ports)
    const each = Array.from({ length: 24 }, () => curl(edge, { transport, host }))
    expect((await Promise.all(each)).map(({ status }) => status)).toEqual(Array(24).fill(200))
  })

  test.each([
    { how: 'with a length', args: [] },
    { how: 'without one', args: ['-H', 'Transfer-Encoding: chunked'] },
  ])('an upload $how is sent whole to the one that does not', async ({ args }) => {
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

  test('all of them make 502 upstream_refused, each asked once', async () => {
    const { host } = tunnel([dead, dead, dead])
    const before = edge.sessions.opened
    const { status, reason } = await curl(edge, { transport, host })
    expect([status, reason, edge.sessions.opened - before]).toEqual([502, 'upstream_refused', 3])
  })
})

test('one that refused is not asked by the requests that follow', async () => {
  const { host } = tunnel([echo.port, dead])
  const before = edge.sessions.opened
  const request = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
  for (let count = 0; count < 10; count++) expect(await answered(edge.httpPort, request)).toContain('200 OK')
  // One that was refused, one that serves all ten.
  expect(edge.sessions.opened - before).toBe(2)
})
