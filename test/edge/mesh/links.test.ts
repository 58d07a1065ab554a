import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Tunnel } from '../../../crds/tunnel.ts'
import { createCa, issueCertificate } from '../../../operator/certificates/local-ca.ts'
import { connectClient, makeKey, visit } from '../../support/edge/mesh-client.ts'
import { DOMAIN, type MeshEdge, openMeshFixture, startMeshEdge } from '../../support/edge/mesh-edges.ts'
import { freePort } from '../../support/free-port.ts'
import { SOON } from '../../support/patience.ts'

const quick = { limits: { pingMs: 50, silentMs: 1_000, tickMs: 20, helloMs: 1_000 } }

/** TCP relay between two edges. A test can make it stop forwarding without closing. */
async function wire(port: number) {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
    near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    /** Stops forwarding, and accepts no new connections. */
    die() {
      server.close()
      for (const socket of sockets) socket.unpipe().pause()
    },
    end() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function fixture() {
  const opened = await openMeshFixture()
  onTestFinished(() => opened[Symbol.asyncDispose]())
  return { fixture: opened, key: await makeKey(opened) }
}

async function edgeOf(...args: Parameters<typeof startMeshEdge>): Promise<MeshEdge> {
  const edge = await startMeshEdge(...args)
  onTestFinished(() => edge[Symbol.asyncDispose]())
  return edge
}

async function backend(): Promise<number> {
  const server = createHttpServer((asked, response) => {
    if (asked.url === '/hang') response.write('begun')
    else response.end('hello')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function metric({ registry }: MeshEdge, name: string): Promise<number> {
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(await registry.metrics())?.[1] ?? Number.NaN)
}

const closed = (socket: Socket) =>
  new Promise((resolve) => (socket.destroyed ? resolve(undefined) : socket.once('close', resolve)))

const linked = (edge: MeshEdge, links: number) =>
  vi.waitFor(async () => expect(await metric(edge, 'mooring_edge_mesh_links')).toBe(links), SOON)

describe('an edge that stops responding', () => {
  test('is removed with its sessions and channels, and its client serves at another edge', async () => {
    const { fixture: here, key } = await fixture()
    const lines: Awaited<ReturnType<typeof wire>>[] = []
    // Either edge may open the connection.
    const wired = {
      ...quick,
      announce: async (port: number) => {
        const line = await wire(port)
        lines.push(line)
        return line.port
      },
    }
    const left = await edgeOf(here, 'edge-a', wired)
    const right = await edgeOf(here, 'edge-b', wired)
    onTestFinished(() => lines.forEach((line) => line.end()))
    const { hostname } = await here.tunnel(key.publicKey)
    const target = await backend()
    const client = await connectClient(here, { sshPort: right.ports.ssh, hostname, key, target })
    onTestFinished(() => client[Symbol.asyncDispose]())
    const { http } = left.ports
    await vi.waitFor(async () => expect(await visit({ port: http, hostname })).toMatchObject({ status: 200 }), SOON)
    const hanging = connect(http, '127.0.0.1')
    hanging.on('error', () => hanging.destroy())
    hanging.write(`GET /hang HTTP/1.1\r\nHost: ${hostname}.${DOMAIN}\r\n\r\n`)
    expect(String(await once(hanging, 'data'))).toContain('begun')

    for (const line of lines) line.die()
    await vi.waitFor(async () => expect(await metric(left, 'mooring_edge_mesh_sessions')).toBe(0), SOON)
    await closed(hanging)
    expect(left.requests.findLast(({ path }) => path === '/hang')).toMatchObject({ reason: 'upstream_reset' })
    expect(await visit({ port: http, hostname })).toMatchObject({ status: 503, error: 'tunnel_offline' })
    const anew = await connectClient(here, { sshPort: left.ports.ssh, hostname, key, target })
    onTestFinished(() => anew[Symbol.asyncDispose]())
    await vi.waitFor(
      async () => expect(await visit({ port: http, hostname })).toMatchObject({ status: 200, body: 'hello' }),
      SOON,
    )
  })
})

test('three edges connect in pairs, and an edge that joins later learns all sessions', async () => {
  const { fixture: here, key } = await fixture()
  const first = await edgeOf(here, 'edge-a')
  const second = await edgeOf(here, 'edge-b')
  const { hostname } = await here.tunnel(key.publicKey)
  const client = await connectClient(here, { sshPort: first.ports.ssh, hostname, key, target: await backend() })
  onTestFinished(() => client[Symbol.asyncDispose]())
  await vi.waitFor(async () => expect(await metric(second, 'mooring_edge_mesh_sessions')).toBe(1), SOON)
  const third = await edgeOf(here, 'edge-0')
  await third.edge.joined()
  expect(await visit({ port: third.ports.http, hostname })).toMatchObject({ status: 200, body: 'hello' })
  for (const edge of [first, second, third]) await linked(edge, 2)
  await third[Symbol.asyncDispose]()
  for (const edge of [first, second]) await linked(edge, 1)
})

test('an edge that restarts while peers list its old address learns all sessions before it has joined', async () => {
  const { fixture: here, key } = await fixture()
  const first = await edgeOf(here, 'edge-a')
  const { hostname } = await here.tunnel(key.publicKey)
  const client = await connectClient(here, { sshPort: first.ports.ssh, hostname, key, target: await backend() })
  onTestFinished(() => client[Symbol.asyncDispose]())
  await vi.waitFor(async () => expect(await visit({ port: first.ports.http, hostname })).toMatchObject({ status: 200 }), SOON)
  // edge-a is to connect to edge-b, whose listed address is wrong. The listed edge-0 does not exist.
  const gone = await freePort()
  await here.announce('edge-b', gone)
  await here.announce('edge-0', gone)
  const second = await edgeOf(here, 'edge-b', { announce: async () => undefined })
  await second.edge.joined()
  expect(await metric(second, 'mooring_edge_mesh_sessions')).toBe(1)
  expect(await visit({ port: second.ports.http, hostname })).toMatchObject({ status: 200, body: 'hello' })
})

test('a tunnel whose keys are removed ends its sessions, and every edge forgets them', async () => {
  const { fixture: here, key } = await fixture()
  const left = await edgeOf(here, 'edge-a')
  const right = await edgeOf(here, 'edge-b')
  const { hostname, name } = await here.tunnel(key.publicKey)
  await using client = await connectClient(here, { sshPort: right.ports.ssh, hostname, key, target: await backend() })
  await vi.waitFor(async () => expect(await visit({ port: left.ports.http, hostname })).toMatchObject({ status: 200 }), SOON)
  await here.store.mergePatch(Tunnel, { namespace: 'acme--prod', name }, { spec: { config: { authorizedKeys: [] } } })
  expect(await client.exited).toBe(255)
  expect(client.said()).toContain('the key of this login was removed')
  await vi.waitFor(async () => expect(await metric(left, 'mooring_edge_mesh_sessions')).toBe(0), SOON)
})

describe('the mesh certificate', () => {
  test('is renewed without a restart, and new mesh connections use the new one', async () => {
    const { fixture: here } = await fixture()
    const left = await edgeOf(here, 'edge-a')
    await here.renewMeshCertificate()
    await left.reload()
    const right = await edgeOf(here, 'edge-b')
    await linked(right, 1)
    await linked(left, 1)
    const { serialNumber } = await certificateOf(left.ports.mesh, here.meshFiles)
    expect(serialNumber).toBe((await certificateOf(right.ports.mesh, here.meshFiles)).serialNumber)
  })

  test.each(['none', 'another authority’s'])(
    'of a peer is %s: the edge closes the connection without sending data',
    async (which) => {
      const { fixture: here } = await fixture()
      const edge = await edgeOf(here, 'edge-a')
      const ca = await createCa(new Date())
      const own = await issueCertificate({ ca, names: ['edge-b'], now: new Date(), usage: 'peer' })
      const socket = connectTls({
        ...{ host: '127.0.0.1', port: edge.ports.mesh, rejectUnauthorized: false },
        ...(which !== 'none' && { cert: own.certificate, key: own.key }),
      })
      let heard = 0
      socket.on('data', (data: Buffer) => (heard += data.length)).on('error', () => socket.destroy())
      await closed(socket)
      expect(heard).toBe(0)
    },
  )

  test('alone does not keep a connection open: the peer must use the mesh protocol', async () => {
    const { fixture: here } = await fixture()
    const edge = await edgeOf(here, 'edge-a', quick)
    const hello = Buffer.from([1, 0, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d])
    for (const said of [Buffer.alloc(0), hello, Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(64, 0xff)]) {
      const socket = await dial(edge.ports.mesh, here.meshFiles)
      socket.on('error', () => socket.destroy()).resume()
      socket.write(said)
      await closed(socket)
    }
    expect(await metric(edge, 'mooring_edge_mesh_links')).toBe(0)
  })
})

async function dial(port: number, files: string) {
  const [ca, cert, key] = await Promise.all(['ca.crt', 'tls.crt', 'tls.key'].map((name) => readFile(join(files, name), 'utf8')))
  const socket = connectTls({ host: '127.0.0.1', port, ca, cert, key, checkServerIdentity: () => undefined })
  await once(socket, 'secureConnect')
  return socket
}

async function certificateOf(port: number, files: string) {
  const socket = await dial(port, files)
  const certificate = socket.getPeerCertificate()
  socket.destroy()
  return certificate
}

test('an edge rejects unreadable certificate files at its start, and ignores them later', async () => {
  const { fixture: here } = await fixture()
  const edge = await edgeOf(here, 'edge-a')
  await writeFile(join(here.meshFiles, 'tls.key'), 'no key')
  await edge.reload()
  const empty = await mkdtemp(join(here.directory, 'empty-'))
  await expect(startMeshEdge({ ...here, meshFiles: empty }, 'edge-b')).rejects.toMatchObject({ code: 'files_unreadable' })
})
