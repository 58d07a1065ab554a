import { closeOf } from '../../support/edge/raw-http.ts'
import { once } from 'node:events'
import { createServer, request, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Tunnel } from '../../../crds/tunnel.ts'
import { serveStore, type EdgeProcess, startEdgeProcess } from '../../support/edge/edge-process.ts'
import { connectClient, makeKey, visit } from '../../support/edge/mesh-client.ts'
import { DOMAIN, openMeshFixture } from '../../support/edge/mesh-edges.ts'
import { freePort } from '../../support/free-port.ts'
import { SOON } from '../../support/patience.ts'

const fixture = await openMeshFixture()
const kubeconfig = join(fixture.directory, 'kubeconfig')
const api = await serveStore(fixture.store, kubeconfig)
const key = await makeKey(fixture)
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})

let count = 0
async function edgeProcess(options: { dataDir?: string; name?: string; drainSeconds?: number } = {}): Promise<EdgeProcess> {
  const { name = `edge-${String((count += 1))}` } = options
  const edge = await startEdgeProcess(fixture, { ...options, name, kubeconfig, metricsPort: await freePort() })
  await fixture.announce(name, edge.ports.mesh)
  onTestFinished(async () => {
    await edge[Symbol.asyncDispose]()
    await fixture.withdraw(name)
  })
  return edge
}

async function backend(answer: RequestListener = (_asked, response) => response.end('hello')): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function client(edge: EdgeProcess, hostname: string, target: number) {
  const connected = await connectClient(fixture, { sshPort: edge.ports.ssh, hostname, key, target })
  onTestFinished(() => connected[Symbol.asyncDispose]())
  return connected
}

const served = (edge: EdgeProcess, hostname: string) =>
  vi.waitFor(async () => expect(await visit({ port: edge.ports.http, hostname })).toMatchObject({ status: 200 }), SOON)

const readiness = async ({ metricsPort }: EdgeProcess) => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).status

describe('an edge that is killed', () => {
  test('cuts pending requests, later ones are 503, and its client serves at another edge', async () => {
    const [left, right] = [await edgeProcess(), await edgeProcess()]
    const { hostname } = await fixture.tunnel(key.publicKey)
    const target = await backend((asked, response) => {
      if (asked.url === '/hang') response.write('begun')
      else response.end('hello')
    })
    const first = await client(left, hostname, target)
    await served(right, hostname)
    const hanging = connect(right.ports.http, '127.0.0.1').on('error', () => hanging.destroy())
    hanging.write(`GET /hang HTTP/1.1\r\nHost: ${hostname}.${DOMAIN}\r\n\r\n`)
    await once(hanging, 'data')
    const cut = closeOf(hanging)

    left.kill('SIGKILL')
    await cut
    expect(await visit({ port: right.ports.http, hostname })).toMatchObject({ status: 503, error: 'tunnel_offline' })
    expect(await first.exited).toBe(255)
    await client(right, hostname, target)
    await served(right, hostname)
  })
})

describe('while the API is unavailable', () => {
  test('an edge serves on, restarts from its snapshot, and applies later changes when the API is back', async () => {
    const edge = await edgeProcess()
    const { hostname } = await fixture.tunnel(key.publicKey)
    const gone = await fixture.tunnel(key.publicKey)
    const target = await backend()
    await client(edge, hostname, target)
    await served(edge, hostname)
    const secure = { port: edge.ports.https, hostname, ca: fixture.ca.certificate }
    const kept = join(edge.dataDir, 'snapshot')
    await vi.waitFor(async () => {
      const text = await readFile(kept, 'utf8')
      for (const what of [`pem/tunnel-${hostname}-certificate`, hostname, gone.hostname]) expect(text).toContain(what)
    }, SOON)
    expect((await stat(kept)).mode & 0o777).toBe(0o600)

    await api.leave()
    expect(await visit(secure)).toMatchObject({ status: 200, body: 'hello' })
    edge.kill('SIGKILL')
    await edge.exited
    await fixture.store.delete(Tunnel, { namespace: 'acme--prod', name: gone.name })
    const late = await fixture.tunnel(key.publicKey)

    const anew = await startEdgeProcess(fixture, {
      name: edge.name,
      dataDir: edge.dataDir,
      kubeconfig,
      metricsPort: await freePort(),
    })
    onTestFinished(() => anew[Symbol.asyncDispose]())
    expect(await readiness(anew)).toBe(200)
    await client(anew, hostname, target)
    await served(anew, hostname)
    expect(await visit({ ...secure, port: anew.ports.https })).toMatchObject({ status: 200, body: 'hello' })
    expect(await visit({ port: anew.ports.http, hostname: gone.hostname })).toMatchObject({ error: 'tunnel_offline' })
    expect(await visit({ port: anew.ports.http, hostname: late.hostname })).toMatchObject({ error: 'unknown_host' })

    await api.comeBack()
    await vi.waitFor(async () => {
      expect(await visit({ port: anew.ports.http, hostname: gone.hostname })).toMatchObject({ error: 'unknown_host' })
      expect(await visit({ port: anew.ports.http, hostname: late.hostname })).toMatchObject({ error: 'tunnel_offline' })
    }, SOON)
    expect(await visit({ ...secure, port: anew.ports.https })).toMatchObject({ status: 200, body: 'hello' })
  })
})

describe('an edge that receives SIGTERM', () => {
  test('notifies its clients, serves until they connect elsewhere, completes requests, and exits with 0', async () => {
    const [left, right] = [await edgeProcess({ drainSeconds: 24 }), await edgeProcess()]
    const { hostname } = await fixture.tunnel(key.publicKey)
    let finish: () => void = () => undefined
    const target = await backend((asked, response) => {
      if (asked.url === '/slow') {
        response.write('beginning, ')
        finish = () => response.end('end')
      } else response.end('hello')
    })
    const first = await client(left, hostname, target)
    await served(right, hostname)
    const slow = request({ host: '127.0.0.1', port: right.ports.http, path: '/slow', headers: { Host: `${hostname}.${DOMAIN}` } })
    slow.on('error', () => undefined).end()
    const [answer] = (await once(slow, 'response')) as [AsyncIterable<Buffer> & NodeJS.ReadableStream]
    const whole = text(answer).catch(String)

    left.kill('SIGTERM')
    await vi.waitFor(async () => expect(await readiness(left)).toBe(503), SOON)
    const refused = await client(left, hostname, target)
    expect(await refused.exited).toBe(255)
    expect(refused.said()).toContain('Mooring: this edge is stopping. Connect again.')
    // The former client still serves its pending request, and gets no new ones.
    await client(right, hostname, await backend((_asked, response) => response.end('elsewhere')))
    await vi.waitFor(async () => {
      for (const { ports } of [left, right])
        expect(await visit({ port: ports.http, hostname })).toMatchObject({ body: 'elsewhere' })
    }, SOON)
    finish()
    expect(await whole).toBe('beginning, end')
    expect(await first.exited).toBe(255)
    expect(first.said()).toContain('Mooring: this edge is stopping. Connect again.')
    expect(await left.exited).toBe(0)
  })

  test('keeps a tunnel with a slow request serving while its client has not been notified', async () => {
    const [left, right] = [await edgeProcess({ drainSeconds: 600 }), await edgeProcess()]
    const { hostname } = await fixture.tunnel(key.publicKey)
    const target = await backend((asked, response) => {
      if (asked.url === '/slow') response.write('beginning')
      else response.end('hello')
    })
    const only = await client(left, hostname, target)
    await served(right, hostname)
    const slow = request({ host: '127.0.0.1', port: right.ports.http, path: '/slow', headers: { Host: `${hostname}.${DOMAIN}` } })
    slow.on('error', () => undefined).end()
    await once(slow, 'response')

    left.kill('SIGTERM')
    await vi.waitFor(async () => expect(await readiness(left)).toBe(503), SOON)
    // Longer than a visitor waits for a client, and shorter than the client's drain time.
    const until = performance.now() + 4_000
    while (performance.now() < until) {
      expect(await visit({ port: right.ports.http, hostname })).toMatchObject({ status: 200, body: 'hello' })
      await setTimeout(50)
    }
    expect(only.said()).not.toContain('Connect again')
    slow.destroy()
  })
})
