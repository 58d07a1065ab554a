import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Tunnel } from '../../../crds/tunnel.ts'
import { connectClient, makeKey, visit } from '../../support/edge/mesh-client.ts'
import { DOMAIN, openMeshFixture, startMeshEdge } from '../../support/edge/mesh-edges.ts'
import { settled } from '../../support/edge/settled.ts'
import { freePort } from '../../support/free-port.ts'
import { SOON } from '../../support/patience.ts'

const fixture = await openMeshFixture()
const key = await makeKey(fixture)
const left = await startMeshEdge(fixture, 'edge-a')
const right = await startMeshEdge(fixture, 'edge-b')

afterAll(async () => {
  await left[Symbol.asyncDispose]()
  await right[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})

/** Starts a web server on this machine. @returns its port */
async function backend(answer: RequestListener): Promise<number> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const says =
  (text: string): RequestListener =>
  (_request, response) =>
    response.end(text)

/** Creates a tunnel with a client at the edge. Resolves when the tunnel responds through that edge. */
async function served(target: number, edge = left) {
  const { hostname } = await fixture.tunnel(key.publicKey)
  const client = await join(hostname, target, edge)
  return { hostname, client }
}

async function join(hostname: string, target: number, edge = left) {
  const client = await connectClient(fixture, { sshPort: edge.ports.ssh, hostname, key, target })
  onTestFinished(() => client[Symbol.asyncDispose]())
  await vi.waitFor(async () => expect(await visit({ port: edge.ports.http, hostname })).toMatchObject({ status: 200 }), SOON)
  return client
}

describe('a visitor of one edge', () => {
  test('reaches a client at another edge, over HTTP and HTTPS', async () => {
    const { hostname } = await served(await backend(says('hello')))
    const { ports } = right
    expect(await visit({ port: ports.http, hostname })).toMatchObject({ status: 200, body: 'hello' })
    expect(await visit({ port: ports.https, hostname, ca: fixture.ca.certificate })).toMatchObject({ status: 200, body: 'hello' })
  })

  test('downloads and uploads 16 MiB at the same time without loss', async () => {
    const sent = randomBytes(16 * 1024 * 1024)
    const digest = (data: Buffer) => createHash('sha256').update(data).digest('hex')
    const target = await backend((asked, response) => {
      if (asked.method === 'GET') response.end(asked.url === '/' ? '' : sent)
      else
        bytesOf(asked).then(
          (data) => response.end(digest(data)),
          () => response.destroy(),
        )
    })
    const { hostname } = await served(target)
    const about = { host: '127.0.0.1', port: right.ports.http, headers: { Host: `${hostname}.${DOMAIN}` } }
    const [down, up] = await Promise.all([
      answerOf(request({ ...about, path: '/file' }).end()).then(bytesOf),
      answerOf(request({ ...about, method: 'POST' }).end(sent)).then(bytesOf),
    ])
    expect(digest(down)).toBe(digest(sent))
    expect(up.toString()).toBe(digest(sent))
  })

  test('that stops reading limits the memory of both edges to flow-control windows', async () => {
    let written = 0
    const target = await backend((asked, response) => {
      if (asked.url === '/') return void response.end('')
      const chunk = Buffer.alloc(64 * 1024)
      const more = () => {
        do written += chunk.length
        while (response.write(chunk) && !response.destroyed)
      }
      response.on('drain', more)
      more()
    })
    const { hostname } = await served(target)
    const asked = request({
      host: '127.0.0.1',
      port: right.ports.http,
      path: '/endless',
      headers: { Host: `${hostname}.${DOMAIN}` },
    })
    const answer = await answerOf(asked.end())
    answer.pause()
    await vi.waitUntil(() => written > 0, SOON)
    await settled(() => written)
    // Includes the kernel's buffers of six sockets.
    expect(written).toBeLessThan(24 * 1024 * 1024)
    answer.destroy()
  })

  test('upgrades the protocol with a backend', async () => {
    const target = await backend(says('plain'))
    const { hostname } = await served(target)
    const echo = createServer().on('upgrade', (_asked, socket) => {
      socket.on('error', () => socket.destroy())
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    })
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void echo.close())
    const { hostname: other } = await fixture.tunnel(key.publicKey)
    const client = await connectClient(fixture, {
      ...{ sshPort: left.ports.ssh, hostname: other, key, target: (echo.address() as AddressInfo).port },
    })
    onTestFinished(() => client[Symbol.asyncDispose]())
    await vi.waitFor(() => expect(left.connections.at(-1)).toMatchObject({ type: 'connect' }), SOON)
    const asked = request({
      ...{ host: '127.0.0.1', port: right.ports.http },
      headers: { Host: `${other}.${DOMAIN}`, Connection: 'Upgrade', Upgrade: 'echo' },
    }).end()
    const back = await new Promise<string>((resolve, reject) => {
      asked.on('error', reject).on('upgrade', (_answer, socket) => {
        socket.on('error', reject)
        socket.once('data', (data: Buffer) => {
          resolve(data.toString())
          socket.destroy()
        })
        socket.write('ping')
      })
    })
    expect(back).toBe('ping')
    expect(await visit({ port: right.ports.http, hostname })).toMatchObject({ body: 'plain' })
  })

  test('resumes its TLS session at another edge', async () => {
    const { hostname } = await served(await backend(says('hello')))
    const servername = `${hostname}.${DOMAIN}`
    const about = { host: '127.0.0.1', servername, ca: fixture.ca.certificate, ALPNProtocols: ['http/1.1'] }
    const first = connectTls({ ...about, port: left.ports.https })
    const [session] = (await once(first, 'session')) as [Buffer]
    first.destroy()
    const second = connectTls({ ...about, port: right.ports.https, session })
    await once(second, 'secureConnect')
    expect(second.isSessionReused()).toBe(true)
    second.destroy()
  })

  test('gets 502 when the client’s target refuses connections', async () => {
    const { hostname } = await fixture.tunnel(key.publicKey)
    const client = await connectClient(fixture, { sshPort: left.ports.ssh, hostname, key, target: 9 })
    onTestFinished(() => client[Symbol.asyncDispose]())
    await vi.waitFor(
      async () =>
        expect(await visit({ port: right.ports.http, hostname })).toMatchObject({ status: 502, error: 'upstream_refused' }),
      SOON,
    )
  })

  test('gets 503 when the client has disconnected', async () => {
    const { hostname, client } = await served(await backend(says('hello')))
    await client[Symbol.asyncDispose]()
    expect(await visit({ port: right.ports.http, hostname })).toMatchObject({ status: 503, error: 'tunnel_offline' })
  })
})

test('all edges prefer a client that reconnects at another edge, and its unresponsive former session ends', async () => {
  const { hostname, client } = await served(await backend(says('first')), left)
  client.freeze()
  const anew = await connectClient(fixture, {
    ...{ sshPort: right.ports.ssh, hostname, key, target: await backend(says('second')) },
  })
  onTestFinished(() => anew[Symbol.asyncDispose]())
  for (const { ports } of [right, left, right, left]) {
    await vi.waitFor(async () => expect(await visit({ port: ports.http, hostname })).toMatchObject({ body: 'second' }), SOON)
  }
  const ended = { type: 'disconnect', reason: 'replaced' }
  await vi.waitFor(() => expect(left.connections.at(-1)).toMatchObject(ended), SOON)
})

test('clients at two edges share the requests of a tunnel', async () => {
  const slow: RequestListener = (asked, response) => void setTimeout(() => response.end(asked.url), 300)
  const seen = { old: 0, new: 0 }
  const counting =
    (which: keyof typeof seen): RequestListener =>
    (asked, response) => {
      seen[which] += 1
      slow(asked, response)
    }
  const { hostname } = await served(await backend(counting('old')), left)
  await join(hostname, await backend(counting('new')), right)
  for (const { ports } of [left, right]) {
    await vi.waitFor(async () => {
      Object.assign(seen, { old: 0, new: 0 })
      await Promise.all(Array.from({ length: 6 }, () => visit({ port: ports.http, hostname })))
      expect(Math.min(seen.old, seen.new)).toBeGreaterThan(1)
    }, SOON)
  }
})

test.each([
  { setting: 'an ingress list', change: { ingressIPWhitelist: ['192.0.2.0/24'] } },
  { setting: 'httpsOnly', change: { httpsOnly: true } },
])('an open upgrade between two edges ends when $setting no longer allows it', async ({ change }) => {
  const { hostname, name } = await fixture.tunnel(key.publicKey)
  const target = createServer().on('upgrade', (_asked, socket) => {
    socket.on('error', () => socket.destroy())
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void target.close())
  const client = await connectClient(fixture, {
    ...{ sshPort: left.ports.ssh, hostname, key, target: (target.address() as AddressInfo).port },
  })
  onTestFinished(() => client[Symbol.asyncDispose]())
  await vi.waitFor(() => expect(left.connections.at(-1)).toMatchObject({ type: 'connect' }), SOON)
  const asked = request({
    ...{ host: '127.0.0.1', port: right.ports.http },
    headers: { Host: `${hostname}.${DOMAIN}`, Connection: 'Upgrade', Upgrade: 'echo' },
  }).end()
  const [, socket] = (await once(asked, 'upgrade')) as [IncomingMessage, Socket]
  const closed = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve))
  socket.write('ping')
  expect(String((await once(socket, 'data'))[0])).toBe('ping')
  await fixture.store.mergePatch(Tunnel, { namespace: 'acme--prod', name }, { spec: { config: change } })
  await closed
})

test.each([
  { where: 'at the same edge', bad: left },
  { where: 'at another edge', bad: right },
])('a newer client $where whose target is down fails no request at any edge', async ({ bad }) => {
  const { hostname } = await served(await backend(says('hello')), left)
  const port = await freePort()
  const newer = await connectClient(fixture, { sshPort: bad.ports.ssh, hostname, key, target: port })
  onTestFinished(() => newer[Symbol.asyncDispose]())
  // OpenSSH reports each refused channel, so that the count shows visits that reached this client.
  const refusals = () => newer.said().split('failed').length - 1
  const statuses = new Set<number>()
  for (const { ports } of [left, right]) {
    const before = refusals()
    await vi.waitFor(async () => {
      const visits = Array.from({ length: 12 }, () => visit({ port: ports.http, hostname }))
      for (const { status } of await Promise.all(visits)) statuses.add(status)
      expect(refusals()).toBeGreaterThan(before)
    }, SOON)
  }
  expect([...statuses]).toEqual([200])
})

const answerOf = (asked: ReturnType<typeof request>): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    asked.once('response', resolve).once('error', reject)
  })

async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(stream))
}
