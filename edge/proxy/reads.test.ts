import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { afterAll, describe, expect, test } from 'vitest'
import { selfSignedPem } from '../../test/support/edge/self-signed.ts'
import { lastingCopy, pauseReads, readAll } from './reads.ts'

const cleanup = new AsyncDisposableStack()
afterAll(() => cleanup.disposeAsync())

/** A client of the server, and what the server has of it. */
async function pair(server: Server, dial: (port: number) => Socket): Promise<{ client: Socket; accepted: Socket }> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  const arrived = once(server, event) as Promise<[Socket]>
  const client = dial(port)
  client.on('error', () => client.destroy())
  const [accepted] = await arrived
  accepted.on('error', () => accepted.destroy())
  cleanup.defer(async () => {
    client.destroy()
    accepted.destroy()
    server.close()
    await once(server, 'close')
  })
  return { client, accepted }
}

const { cert, key } = selfSignedPem('reads.test')
const overTcp = () => pair(createServer({ allowHalfOpen: true }), (port) => connect(port, '127.0.0.1'))
const ways = [
  ['TCP', overTcp],
  [
    'TLS',
    () =>
      pair(createTlsServer({ allowHalfOpen: true, cert, key }), (port) =>
        connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }),
      ),
  ],
] as const

describe.each(ways)('what comes by %s', (_name, make) => {
  test('is read in order into the one buffer, after what had been read before, until its end', async () => {
    const { client, accepted } = await make()
    accepted.unshift(Buffer.from('before '))
    const read: { readonly text: string; readonly lasting: boolean; readonly buffer: ArrayBufferLike }[] = []
    readAll(accepted, (chunk, lasting) => read.push({ text: chunk.toString(), lasting, buffer: chunk.buffer }))
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
    expect(read.map(({ lasting }) => lasting)).toEqual([true, false, false, false])
    expect(new Set(read.slice(1).map(({ buffer }) => buffer)).size).toBe(1)
  })

  test('waits while its socket is paused, a part of it read, and in few pieces', async () => {
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
    for (const piece of sent) {
      client.write(piece)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await expect.poll(() => accepted.readableLength).toBe(sent.length)
    expect(text).toBe('0')
    accepted.resume()
    await expect.poll(() => text).toBe(`0${sent.join('')}`)
    expect(reads).toBeLessThanOrEqual(1 + 64)
  })
})

test('a reset is noticed while a socket is paused', async () => {
  const { client, accepted } = await overTcp()
  readAll(accepted, () => undefined)
  pauseReads(accepted)
  client.write('x')
  await expect.poll(() => accepted.readableLength).toBe(1)
  client.resetAndDestroy()
  await expect.poll(() => accepted.destroyed).toBe(true)
})

test('a copy of what does not last is its own', () => {
  const buffer = Buffer.from('abc')
  const copy = lastingCopy(buffer)
  buffer.fill('x')
  expect(copy.toString()).toBe('abc')
})
