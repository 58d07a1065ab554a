import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { honest, type Honest, socketQueues } from '../../../support/edge/attack-tools.ts'
import { forwardTo, running, sshUser } from '../../../support/edge/openssh.ts'
import { rawBackend } from '../../../support/edge/raw-http.ts'
import { freshHostname } from '../../../support/edge/ssh-edge.ts'
import { type Transport, TRANSPORTS } from '../../../support/edge/visitor.ts'
import { startWholeEdge, type WholeEdge } from '../../../support/edge/whole-edge.ts'

const soon = { timeout: 60_000, interval: 50 }

let edge: WholeEdge
let other: Honest
const cleanup = new AsyncDisposableStack()
beforeAll(async () => {
  // With its ordinary limits: an edge that ends slow uploads early would end this one on a busy machine, and drop the rest of it.
  edge = cleanup.use(await startWholeEdge())
  other = cleanup.use(await honest(edge))
})
afterAll(async () => {
  expect(edge.logged()).toBe('')
  await cleanup.disposeAsync()
})

const memory = async () => {
  const { heap, buffers } = await edge.usage()
  return heap + buffers
}

interface Upload extends Disposable {
  /** Local port of the upload's connection. */
  readonly port: number
  /** Returns the number of body bytes that the socket has accepted. */
  readonly taken: () => number
}

/** Starts an upload that sends as much as flow control allows. */
function upload(transport: Transport, host: string): Upload {
  const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000000\r\n\r\n`
  const about = { host: '127.0.0.1', servername: host, rejectUnauthorized: false }
  const ALPNProtocols = [transport === 'h2' ? 'h2' : 'http/1.1']
  const plain = () => connect({ port: edge.ports.http, host: '127.0.0.1' })
  const socket = transport === 'http' ? plain() : connectTls({ ...about, port: edge.ports.https, ALPNProtocols })
  socket.on('error', () => socket.destroy())
  const session = transport === 'h2' ? connectHttp2(`https://${host}`, { createConnection: () => socket }) : undefined
  session?.on('error', () => undefined)
  const stream = session?.request({ ':method': 'POST' }).on('error', () => undefined) ?? socket
  if (!session) socket.write(head)
  const part = Buffer.alloc(65_536)
  let taken = 0
  const send = () => {
    while (!stream.destroyed && stream.write(part, () => (taken += part.length))) continue
  }
  stream.on('drain', send)
  send()
  return {
    taken: () => taken,
    get port() {
      return socket.localPort ?? 0
    },
    [Symbol.dispose]() {
      session?.destroy()
      socket.destroy()
    },
  }
}

/**
 * Measured distribution of an upload of 10 MB that the target does not read, over plain HTTP and OpenSSH on one machine: 3.7 MB
 * in the system's buffer of the visitor, 0.7 MB in that of the edge, 0.1 MB in the edge, 2.1 MB in the client (its window is
 * 2 MiB), and 4.2 MB in the system's buffers between the client and its target.
 */
test.each(TRANSPORTS)(
  'over %s, at most 4 MB of an upload that the target does not read are between visitor and target',
  async (transport) => {
    await using backend = await rawBackend((_received, socket) => socket.pause())
    await using user = await sshUser(edge)
    const hostname = freshHostname()
    await edge.set(hostname, { authorizedKeys: [user.publicKey] })
    const sessions = (await edge.usage()).sessions
    await using ssh = running(['ssh', ...user.options, ...forwardTo(edge, hostname, backend.port)])
    await vi.waitFor(async () => expect((await edge.usage()).sessions, ssh.said()).toBe(sessions + 1), soon)
    const before = await memory()
    using sender = upload(transport, `${hostname}.${edge.domain}`)
    let last = -1
    while (last !== sender.taken() || last === 0) {
      last = sender.taken()
      for (let count = 0; count < 5; count++) await other.expectServed()
    }
    // The garbage of data in transit is collected soon.
    await vi.waitFor(async () => expect((await memory()) - before).toBeLessThan(4_000_000), soon)
    // A pause of the sender may also be one of a busy machine, with data still on its way.
    await vi.waitFor(async () => {
      const queues = await socketQueues()
      const unsent = queues.find(({ localPort }) => localPort === sender.port)?.toSend ?? 0
      const atTarget = queues
        .filter(({ localPort, remotePort }) => localPort === backend.port || remotePort === backend.port)
        .reduce((sum, { toSend, received }) => sum + toSend + received, 0)
      expect(unsent + atTarget).toBeGreaterThan(0)
      expect(sender.taken() - unsent - atTarget).toBeLessThan(4_000_000)
    }, soon)
  },
)
