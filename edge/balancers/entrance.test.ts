import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { addressList } from '../../crds/formats/address-list.ts'
import { binaryHeader, lineFor } from '../../test/support/edge/balancer.ts'
import { createEntrance } from './entrance.ts'
import type { Peer } from './proxy-header.ts'

const soon = { timeout: 60_000, interval: 5 }

interface Came {
  readonly peer: Peer
  readonly socket: Socket
  readonly paused: boolean
  text: string
}

type Limits = Partial<Pick<Parameters<typeof createEntrance>[0], 'headMs' | 'quietMs' | 'maxAwaited'>>

/** Entrance on loopback that trusts only 127.0.0.1. */
async function startEntrance(limits: Limits = {}) {
  const warnings: unknown[] = []
  const entrance = createEntrance({
    ...{ trusted: addressList(['127.0.0.1']), headMs: 60_000, maxAwaited: 100, ...limits },
    log: { warn: (about: unknown) => void warnings.push(about) },
  })
  const came: Came[] = []
  const accepted: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    entrance.admit(socket, (peer) => {
      const one: Came = { peer, socket, paused: socket.isPaused(), text: '' }
      came.push(one)
      socket.on('data', (chunk) => (one.text += chunk.toString('latin1')))
      socket.on('end', () => socket.end())
      socket.on('error', () => socket.destroy())
      socket.resume()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    for (const socket of accepted) socket.destroy()
    server.close()
    await once(server, 'close')
  })

  async function visit(from = '127.0.0.1'): Promise<Socket> {
    const { port } = server.address() as AddressInfo
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true })
    // A reset is one way of being closed.
    socket.on('error', () => socket.destroy()).resume()
    await once(socket, 'connect')
    return socket
  }
  return { entrance, came, accepted, warnings, visit }
}

describe('a connection of a trusted balancer', () => {
  test.each([
    { does: 'with a line', header: lineFor('203.0.113.7', 4000), address: '203.0.113.7' },
    { does: 'with a binary header', header: binaryHeader(), address: '203.0.113.7' },
    { does: 'that speaks for itself', header: binaryHeader({ command: 0 }), address: '127.0.0.1' },
    { does: 'without a header', header: Buffer.alloc(0), address: '127.0.0.1' },
  ])('$does begins with all bytes after it, wherever they are split', async ({ header, address }) => {
    const { came, visit, accepted } = await startEntrance()
    const bytes = Buffer.concat([header, Buffer.from('hello')])
    for (let split = 1; split < bytes.length; split++) {
      const socket = await visit()
      await vi.waitFor(() => expect(accepted).toHaveLength(split), soon)
      socket.write(bytes.subarray(0, split))
      await vi.waitFor(() => expect(accepted.at(-1)?.bytesRead).toBe(split), soon)
      socket.end(bytes.subarray(split))
      await once(socket, 'close')
      expect(came).toHaveLength(split)
      expect(came.at(-1)).toMatchObject({ text: 'hello', paused: true, peer: { address } })
    }
  })

  test('reads one header only', async () => {
    const { came, visit } = await startEntrance()
    const socket = await visit()
    socket.end(Buffer.concat([lineFor('203.0.113.7', 1), lineFor('203.0.113.8', 1)]))
    await once(socket, 'close')
    expect(came[0]).toMatchObject({
      peer: { address: '203.0.113.7', port: 1 },
      text: 'PROXY TCP4 203.0.113.8 127.0.0.1 1 443\r\n',
    })
  })

  test('is closed at an invalid header, with one warning', async () => {
    const { came, visit, warnings } = await startEntrance()
    for (let count = 0; count < 3; count++) {
      const socket = await visit()
      socket.write('PROXY TCP4 nobody\r\n')
      await once(socket, 'close')
    }
    expect(came).toEqual([])
    expect(warnings).toEqual([{ balancer: '127.0.0.1' }])
  })

  test('is closed when it ends within its header', async () => {
    const { came, visit } = await startEntrance()
    const socket = await visit()
    socket.end('PROXY TCP4')
    await once(socket, 'close')
    expect(came).toEqual([])
  })

  test.each(['', 'PROXY TCP4'])('is closed when only %j arrives in time', async (bytes) => {
    const { came, visit } = await startEntrance({ headMs: 20 })
    const socket = await visit()
    socket.write(bytes)
    await once(socket, 'close')
    expect(came).toEqual([])
  })

  test('begins without a header where a client may wait for the server', async () => {
    const { came, visit } = await startEntrance({ quietMs: 20 })
    const socket = await visit()
    const { localPort: port } = socket
    await vi.waitFor(() => expect(came).toHaveLength(1), soon)
    socket.end('hello')
    await once(socket, 'close')
    expect(came[0]).toMatchObject({ peer: { address: '127.0.0.1', port }, text: 'hello' })
  })

  test('is closed when too many headers are awaited', async () => {
    const { visit, accepted } = await startEntrance({ maxAwaited: 1 })
    const first = await visit()
    const second = await visit()
    await once(second, 'close')
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false, true])
    first.destroy()
  })

  test('is closed when the entrance is closed before its header', async () => {
    const { entrance, visit, accepted } = await startEntrance()
    const socket = await visit()
    await vi.waitFor(() => expect(accepted).toHaveLength(1), soon)
    entrance[Symbol.dispose]()
    await once(socket, 'close')
  })
})

test('a connection from another address begins at once, and its header is data', async () => {
  const { came, visit } = await startEntrance()
  const socket = await visit('127.0.0.2')
  const { localPort: port } = socket
  await vi.waitFor(() => expect(came).toHaveLength(1), soon)
  socket.end('PROXY TCP4 203.0.113.7 127.0.0.1 1 1\r\n')
  await once(socket, 'close')
  expect(came[0]).toMatchObject({
    ...{ peer: { address: '127.0.0.2', port }, paused: false },
    text: 'PROXY TCP4 203.0.113.7 127.0.0.1 1 1\r\n',
  })
})

test('without balancers no header is read', async () => {
  const { visit, accepted } = await startEntrance()
  await visit('127.0.0.2')
  await vi.waitFor(() => expect(accepted).toHaveLength(1), soon)
  const [socket] = accepted
  if (!socket) throw new Error('nobody came')
  const listeners = ['data', 'end', 'error', 'close', 'readable'].map((event) => socket.listenerCount(event))
  const begin = vi.fn<(peer: Peer) => void>()
  createEntrance({ trusted: undefined, headMs: 1, maxAwaited: 1, log: { warn: () => undefined } }).admit(socket, begin)
  expect(begin).toHaveBeenCalledOnce()
  expect(['data', 'end', 'error', 'close', 'readable'].map((event) => socket.listenerCount(event))).toEqual(listeners)
})
