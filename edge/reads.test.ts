import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { selfSignedPem } from '../test/support/edge/proxy-fixture.ts'
import { inBlock, lasting, pauseReads, readAll } from './reads.ts'

const cleanup = new AsyncDisposableStack()
afterAll(() => cleanup.disposeAsync())

/** Client, its transport, and the server's socket. */
interface Pair {
  readonly client: Socket
  readonly tcp: Socket
  readonly accepted: Socket
}

/** `speak` turns a connection into a client. */
async function pair(server: Server, speak: (tcp: Socket) => Socket): Promise<Pair> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  const arrived = once(server, event) as Promise<[Socket]>
  const tcp = connect(port, '127.0.0.1')
  const client = speak(tcp)
  for (const each of new Set([tcp, client])) each.on('error', () => each.destroy())
  const [accepted] = await arrived
  accepted.on('error', () => accepted.destroy())
  cleanup.defer(async () => {
    client.destroy()
    accepted.destroy()
    server.close()
    await once(server, 'close')
  })
  return { client, tcp, accepted }
}

const { cert, key } = selfSignedPem('reads.test')
const overTcp = () => pair(createServer({ allowHalfOpen: true }), (tcp) => tcp)
const ways = [
  ['TCP', overTcp],
  [
    'TLS',
    () =>
      pair(createTlsServer({ allowHalfOpen: true, cert, key }), (socket) => connectTls({ socket, rejectUnauthorized: false })),
  ],
] as const

describe.each(ways)('bytes received over %s', (_name, make) => {
  test('are read in order into the shared buffer, after the bytes read before, until the end', async () => {
    const { client, accepted } = await make()
    accepted.unshift(Buffer.from('before '))
    const read: { readonly text: string; readonly lasts: boolean; readonly buffer: ArrayBufferLike }[] = []
    readAll(accepted, (chunk) => read.push({ text: chunk.toString(), lasts: lasting(chunk) === chunk, buffer: chunk.buffer }))
    await expect.poll(() => read.length).toBe(1)
    for (const part of ['one ', 'two ', 'three']) {
      const length = read.length
      client.write(part)
      await expect.poll(() => read.length).toBe(length + 1)
    }
    const ended = once(accepted, 'end')
    client.end()
    await ended

    expect(read.map(({ text }) => text).join('')).toBe('before one two three')
    expect(read.map(({ lasts }) => lasts)).toEqual([true, false, false, false])
    expect(new Set(read.slice(1).map(({ buffer }) => buffer)).size).toBe(1)
  })

  test('wait while their socket is paused, partly read, in few chunks', async () => {
    const { client, accepted } = await make()
    client.setNoDelay(true)
    let text = ''
    let reads = 0
    readAll(accepted, (chunk) => {
      text += chunk.toString()
      reads += 1
      if (text === '0') pauseReads(accepted)
    })
    const sent = Array.from({ length: 300 }, (_, index) => String(index % 10))
    client.write('0')
    await expect.poll(() => text).toBe('0')
    for (const [index, piece] of sent.entries()) {
      client.write(piece)
      await expect.poll(() => accepted.readableLength, { interval: 1 }).toBe(index + 1)
    }
    expect(text).toBe('0')
    accepted.resume()
    await expect.poll(() => text).toBe(`0${sent.join('')}`)
    expect(reads).toBeLessThanOrEqual(1 + 64)
  })

  test('end at a reset, also while their socket is paused', async () => {
    const { client, tcp, accepted } = await make()
    readAll(accepted, () => undefined)
    pauseReads(accepted)
    client.write('x')
    await expect.poll(() => accepted.readableLength).toBe(1)
    tcp.resetAndDestroy()
    await expect.poll(() => accepted.destroyed).toBe(true)
  })
})

test('a lasting copy of a chunk, or of a part of one, is unchanged by the next read', async () => {
  const { client, accepted } = await overTcp()
  const kept: Buffer[] = []
  let reads = 0
  readAll(accepted, (chunk) => {
    if (reads++ === 0) kept.push(lasting(chunk), lasting(chunk.subarray(1)))
  })
  for (const [count, part] of ['abc', 'xyz'].entries()) {
    client.write(part)
    await expect.poll(() => reads).toBe(count + 1)
  }
  expect(kept.map((chunk) => [chunk.toString(), chunk.buffer.byteLength])).toEqual([
    ['abc', 3],
    ['bc', 2],
  ])
})

test.each([
  ['small', 3_000],
  ['large', 60_000],
])('%s lasting chunks are unchanged by later reads', async (_size, bytes) => {
  const both = [await overTcp(), await overTcp()]
  const sent = Array.from({ length: 60 }, (_, index) => Buffer.alloc(bytes, index + 1))
  const read = both.map(({ accepted }) => {
    const chunks: Buffer[] = []
    readAll(accepted, (chunk) => chunks.push(inBlock(chunk)))
    return chunks
  })
  for (const [index, part] of sent.entries()) {
    both[index % 2]?.client.write(part)
    if (index % 7 === 0) await new Promise(setImmediate)
  }
  const all = read.map((chunks) => () => Buffer.concat(chunks))
  for (const [index, one] of all.entries()) {
    const expected = Buffer.concat(sent.filter((_, part) => part % 2 === index))
    await expect.poll(() => one().length).toBe(expected.length)
    expect(one().equals(expected)).toBe(true)
  }
})

test('small lasting chunks share memory', async () => {
  const { client, accepted } = await overTcp()
  const chunks: Buffer[] = []
  readAll(accepted, (chunk) => chunks.push(inBlock(chunk)))
  for (let count = 1; count <= 20; count++) {
    client.write('x')
    await expect.poll(() => chunks.length, { interval: 1 }).toBe(count)
  }
  expect(new Set(chunks.map(({ buffer }) => buffer)).size).toBeLessThanOrEqual(2)
})
