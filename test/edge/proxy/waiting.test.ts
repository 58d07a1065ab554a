import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { block, data, FRAME, headers, http2Visitor } from '../../support/edge/http2.ts'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { rawBackend, rawVisitor } from '../../support/edge/raw-http.ts'
import { settableClock } from '../../support/clocks.ts'
import { settled } from '../../support/edge/settled.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Requests that wait for a session, or behind responses that their visitor does not read. */

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const context = selfSigned(DOMAIN)
const start = (clock = settableClock()) =>
  startProxy({ contextFor: async () => context, clock, limits: { sweepMs: 20, holdMs: 10_000 } })
const edge = await start()
afterAll(() => edge.proxy.close())
let hostname = ''
let host = ''
beforeEach(() => {
  hostname = freshHostname()
  host = edge.serve(hostname, undefined).host
})

const fieldsOf = (authority: string) =>
  block(Object.entries({ ':method': 'POST', ':scheme': 'https', ':authority': authority, ':path': '/' }))

test('an HTTP/2 request that waits for a session is served after its body has ended empty', async () => {
  await using backend = await rawBackend((received, socket) => {
    if (received.endsWith('\r\n\r\n0\r\n\r\n')) socket.write(OK)
  })
  using visitor = await http2Visitor(edge.httpsPort, host)
  visitor.socket.write(headers(1, fieldsOf(host), 'goes on'))
  await vi.waitUntil(() => edge.sessions.waiting === 1, SOON)
  // Once the second request has its response, the edge has also read the end of the first.
  visitor.socket.write(Buffer.concat([data(1, ''), headers(3, fieldsOf('none.example'))]))
  await vi.waitUntil(() => visitor.seen.some(({ type, stream }) => type === FRAME.headers && stream === 3), SOON)
  edge.sessions.connect(hostname, backend.port)
  await vi.waitUntil(() => edge.records.length === 1, SOON)
  expect(edge.records).toMatchObject([{ status: 200, reason: null, origin: 'backend' }])
})

describe('requests behind responses that are not read', () => {
  const body = 'y'.repeat(30_000)

  /** Starts a visitor that reads nothing, and has sent more requests than the buffers on the way hold responses for. */
  async function unread(own: Awaited<ReturnType<typeof start>>) {
    const COUNT = 400
    const cleanup = new AsyncDisposableStack()
    let asked = 0
    let released: (() => void) | undefined
    let isHeld = false
    const backend = cleanup.use(
      await rawBackend((received, socket) => {
        asked = received.split('\r\n\r\n').length - 1
        const answer = () => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
        if (isHeld) released = answer
        else answer()
      }),
    )
    const name = freshHostname()
    const served = own.serve(name, backend.port)
    const visitor = rawVisitor(own.httpPort)
    cleanup.defer(() => void visitor.socket.destroy())
    visitor.socket.pause()
    visitor.socket.write(`GET / HTTP/1.1\r\nHost: ${served.host}\r\n\r\n`.repeat(COUNT))
    await vi.waitUntil(() => asked > 0, SOON)
    const before = await settled(() => (own.records.length === asked ? asked : Number.NaN))
    expect(before).toBeLessThan(COUNT)
    return {
      ...{ visitor, count: COUNT, before },
      /** Makes the visitor read. The next waiting request gets its response when `release` is called. */
      async resume() {
        isHeld = true
        visitor.socket.resume()
        await vi.waitUntil(() => released, SOON)
      },
      release() {
        isHeld = false
        released?.()
      },
      [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
    }
  }

  test('are answered to a visitor that ended its side long before they begin', async () => {
    const clock = settableClock()
    await using own = await start(clock)
    await using waiting = await unread(own)
    const { visitor, count } = waiting
    const swept = async () => {
      const { reads } = clock
      await vi.waitUntil(() => clock.reads >= reads + 10, SOON)
    }
    visitor.socket.end()
    await swept()
    clock.pass(11_000)
    await waiting.resume()
    await swept()
    waiting.release()
    await vi.waitUntil(() => own.records.length === count, SOON)
    expect(own.records.every(({ status }) => status === 200)).toBe(true)
  })

  test('do not begin on a draining edge, except for one with Connection: close', async () => {
    await using own = await start()
    await using waiting = await unread(own)
    const { visitor, before } = waiting
    own.proxy.drain()
    visitor.socket.resume()
    const answers = (await visitor.over).split('HTTP/1.1 200 OK\r\n').slice(1)
    expect(answers.map((answer) => answer.includes('Connection: close'))).toEqual([...Array<boolean>(before).fill(false), true])
    expect(answers.at(-1)?.endsWith(body)).toBe(true)
    expect(own.failures).toEqual([])
  })
})
