import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { DOMAIN, startProxy, selfSigned } from '../../support/edge/proxy-fixture.ts'
import type { ProxyLimits } from '../../../edge/proxy/limits.ts'
import { rawVisitor } from '../../support/edge/raw-http.ts'
import { freshHostname } from '../../support/edge/ssh-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Responses that come before the end of their request, to visitors that read only after they have written all of it. */

const run = promisify(execFile)
const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context, limits: { sweepMs: 20 } })
afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const TIMES = 3
const BYTES = 20_000_000

/** Python program: http.client writes the whole request before it reads. It repeats this, and prints each status or error. */
const UPLOADS = `
import http.client, socket, ssl, sys
scheme, port, host, framing = sys.argv[1:5]
size, times = int(sys.argv[5]), int(sys.argv[6])
body = bytes(size)
tls = ssl.create_default_context()
tls.check_hostname = False
tls.verify_mode = ssl.CERT_NONE
for _ in range(times):
  connection = http.client.HTTPConnection('127.0.0.1', int(port))
  connection.sock = socket.create_connection(('127.0.0.1', int(port)), float(sys.argv[7]))
  if scheme == 'https': connection.sock = tls.wrap_socket(connection.sock, server_hostname=host)
  try:
    chunks = (body[at:at + 65536] for at in range(0, size, 65536))
    connection.request('POST', '/', chunks if framing == 'chunked' else body, {'Host': host}, encode_chunked=framing == 'chunked')
    answer = connection.getresponse()
    print(answer.status, len(answer.read()))
  except Exception as error:
    print(repr(error))
  connection.close()
`

/** Starts a backend that responds when a request begins, and reads on. @param length bytes of the response's body */
async function answeringAtOnce(length: number): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('data', () => {
      socket.write(`HTTP/1.1 413 Content Too Large\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`)
      socket.end(Buffer.alloc(length))
      socket.resume()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

describe.each(['http', 'https'] as const)('over %s', (scheme) => {
  test.each([
    { framing: 'a length', length: 2 },
    { framing: 'chunked', length: 2 },
    { framing: 'a length', length: 3_000_000 },
  ])('the visitor receives a response of $length bytes during an upload ($framing)', async ({ framing, length }) => {
    const { host } = edge.serve(freshHostname(), await answeringAtOnce(length))
    const port = scheme === 'http' ? edge.httpPort : edge.httpsPort
    const args = [scheme, String(port), host, framing, String(BYTES), String(TIMES), String(SOON.timeout / 1_000)]
    const { stdout } = await run('python3', ['-c', UPLOADS, ...args])
    expect(stdout.trim().split('\n')).toEqual(Array(TIMES).fill(`413 ${length}`))
  })

  test('the visitor receives a response of the edge itself during an upload', async () => {
    const { host } = edge.serve(freshHostname(), undefined, { ingressIPWhitelist: ['192.0.2.1'] })
    const port = scheme === 'http' ? edge.httpPort : edge.httpsPort
    const args = [scheme, String(port), host, 'a length', String(BYTES), String(TIMES), String(SOON.timeout / 1_000)]
    const { stdout } = await run('python3', ['-c', UPLOADS, ...args])
    const [first = '', ...others] = stdout.trim().split('\n')
    expect(first).toMatch(/^403 \d+$/)
    expect(others).toEqual(Array(TIMES - 1).fill(first))
  })
})

describe('a visitor with an early response', () => {
  async function isDisconnected(limits: Partial<ProxyLimits>, more: (socket: Socket) => void): Promise<void> {
    await using own = await startProxy({ limits: { ...limits, sweepMs: 10 } })
    const { host } = own.serve(freshHostname(), undefined, { ingressIPWhitelist: ['192.0.2.1'] })
    const visitor = rawVisitor(own.httpPort, `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100000000\r\n\r\n`)
    onTestFinished(() => void visitor.socket.destroy())
    visitor.socket.removeAllListeners('end')
    more(visitor.socket)
    await visitor.sees('403 ')
    const connections = () => own.registry.getSingleMetricAsString('mooring_edge_visitor_connections')
    await vi.waitUntil(async () => (await connections()).includes('{protocol="http"} 0'), SOON)
  }

  test('that sends nothing more is disconnected', () => isDisconnected({ lingerIdleMs: 100, lingerMs: 60_000 }, () => undefined))

  test('that sends without end is disconnected', () =>
    isDisconnected({ lingerIdleMs: 60_000, lingerMs: 300 }, (socket) => {
      const trickle = setInterval(() => socket.write('x'), 10)
      onTestFinished(() => clearInterval(trickle))
    }))
})
