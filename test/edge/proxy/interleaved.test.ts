import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterAll, expect, test } from 'vitest'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { patient } from '../../support/patience.ts'

const VISITORS = 24
const REQUESTS = 30

const cleanup = new AsyncDisposableStack()
afterAll(() => cleanup.disposeAsync())

/** Returns a generator of numbers below `most`, the same ones for the same seed (a linear congruential generator). */
function dice(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * most)
  }
}

/** Starts a backend that responds with path and body of the request. */
async function echo(): Promise<number> {
  const server = createServer((request, response) => {
    const respond = (body: Buffer) => void response.end(`${request.url ?? ''} ${body.toString('latin1')}`)
    buffer(request).then(respond, () => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.defer(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

/** Returns pipelined requests with bodies of different sizes, and the expected responses. */
function talk(host: string, visitor: number): { readonly bytes: Buffer; readonly answers: readonly string[] } {
  const roll = dice(visitor)
  let text = ''
  const answers: string[] = []
  for (let index = 0; index < REQUESTS; index++) {
    const path = `/${visitor}/${index}`
    const body = String.fromCharCode(97 + ((visitor + index) % 26)).repeat([0, 1, roll(200), roll(30_000)][roll(4)] ?? 0)
    text += `POST ${path} HTTP/1.1\r\nHost: ${host}\r\n`
    if (roll(2) === 0) text += `Content-Length: ${body.length}\r\n\r\n${body}`
    else text += `Transfer-Encoding: chunked\r\n\r\n${body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n\r\n`
    answers.push(`${path} ${body}`)
  }
  return { bytes: Buffer.from(text, 'latin1'), answers }
}

/** Sends the bytes in parts of different sizes, with a turn of the event loop between them. */
async function send(socket: Socket, bytes: Buffer, roll: (most: number) => number): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + roll([3, 300, 70_000][roll(3)] ?? 1)
    if (!socket.write(bytes.subarray(at, end))) await once(socket, 'drain')
    at = end
    await setImmediate()
  }
}

/** Reads `count` responses, which all have a Content-Length. @returns their bodies */
async function answersOf(socket: Socket, count: number): Promise<readonly string[]> {
  let text = ''
  const bodies: string[] = []
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString('latin1')
    for (;;) {
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) break
      const length = /content-length: (\d+)/i.exec(text.slice(0, end))?.[1]
      if (length === undefined) throw new Error(`an answer without a length: ${text.slice(0, end)}`)
      const whole = end + 4 + Number(length)
      if (text.length < whole) break
      bodies.push(text.slice(end + 4, whole))
      text = text.slice(whole)
    }
    if (bodies.length >= count) break
  }
  return bodies
}

test.for(['http', 'https'] as const)(
  'each of many concurrent visitors over %s gets the responses to its own pipelined requests',
  { timeout: patient(60_000) },
  async (scheme) => {
    const context = selfSigned(DOMAIN)
    const edge = cleanup.use(await startProxy({ contextFor: async () => context }))
    const { host } = edge.serve(freshHostname(), await echo())
    await Promise.all(
      Array.from({ length: VISITORS }, async (_, visitor) => {
        const { bytes, answers } = talk(host, visitor)
        const tcp = { port: edge.httpPort, host: '127.0.0.1' }
        const tls = { port: edge.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false }
        const socket = scheme === 'http' ? connect(tcp) : connectTls(tls)
        const [bodies] = await Promise.all([answersOf(socket, answers.length), send(socket, bytes, dice(visitor + 1_000))])
        socket.destroy()
        expect(bodies).toEqual(answers)
      }),
    )
    expect(edge.failures).toEqual([])
  },
)
