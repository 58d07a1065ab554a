import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { DOMAIN, startProxy, selfSigned, tunnelBefore } from '../../support/edge/proxy-fixture.ts'
import { answered } from '../../support/edge/raw-http.ts'

/** Limits of heads, which are the same over HTTP/1.1 and HTTP/2. */

const context = selfSigned(DOMAIN)
const edge = await startProxy({ contextFor: async () => context })
afterAll(async () => {
  await edge.proxy.close()
  expect(edge.failures).toEqual([])
})

const answering = (received: string, socket: Socket) => {
  if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
}

/** Returns one field: names and values in turn. */
const field = (length: number): readonly string[] => ['x', 'a'.repeat(length)]
const fields = (count: number, length = 1): readonly string[] =>
  Array.from({ length: count }, (_, index) => [`x${index}`, 'v'.repeat(length)]).flat()

describe.each([
  { does: 'a field of 30 kB', head: field(30_000), status: 200 },
  { does: 'a field of 33 kB', head: field(33_000), status: 431 },
  { does: 'a field of 70 kB', head: field(70_000), status: 431 },
  { does: 'a field of 70 kB that hardly compresses', head: ['x', randomBytes(52_500).toString('base64')], status: 431 },
  { does: 'a field of 100 kB', head: field(100_000), status: 431 },
  { does: 'eight fields of 16 kB', head: fields(8, 16_000), status: 431 },
  { does: 'fifty fields', head: fields(50), status: 200 },
  { does: '101 fields', head: fields(101), status: 431 },
  { does: '1,000 fields', head: fields(1_000), status: 431 },
  { does: '5,000 fields', head: fields(5_000), status: 431 },
])('a head with $does is $status', ({ head, status }) => {
  test('over HTTP/1.1', async () => {
    await using tunnel = await tunnelBefore(edge, answering)
    let lines = `Host: ${tunnel.host}\r\nConnection: close\r\n`
    for (let index = 0; index < head.length; index += 2) lines += `${head[index] ?? ''}: ${head[index + 1] ?? ''}\r\n`
    expect(await answered(edge.httpPort, `GET / HTTP/1.1\r\n${lines}\r\n`)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  })

  test('over HTTP/2, and its connection serves the next request', async () => {
    await using tunnel = await tunnelBefore(edge, answering)
    // After this response the visitor has applied the edge's settings.
    expect((await tunnel.visitor.ask()).status).toBe(200)
    const answer = await tunnel.visitor.ask(head)
    expect(answer.status).toBe(status)
    if (status === 431) expect(answer.fields).toEqual(expect.arrayContaining(['mooring-error', 'head_too_large']))
    expect((await tunnel.visitor.ask()).status).toBe(200)
    const [, second] = edge.records.filter(({ tunnel: id }) => id === `uid-${tunnel.hostname}`)
    expect(second).toMatchObject({ status, protocol: 'h2', path: '/' })
  })
})

test('many cookie fields over HTTP/2 reach the backend as one field', async () => {
  await using tunnel = await tunnelBefore(edge, answering)
  const cookies = Array.from({ length: 300 }, (_, index) => ['cookie', `c${index}=1`]).flat()
  expect((await tunnel.visitor.ask(cookies)).status).toBe(200)
  expect(tunnel.received[0]).toContain('c0=1; c1=1; ')
  expect(tunnel.received[0]).toContain('; c299=1\r\n')
})

test('HTTP/2 trailers that are too large are 400, and their connection serves the next request', async () => {
  await using tunnel = await tunnelBefore(edge, (received, socket) => {
    if (received.endsWith('0\r\n\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  })
  const ask = (trailers: Record<string, string>) => tunnel.visitor.ask([':method', 'POST'], { body: 'x', trailers })
  expect((await ask({ x: 'a'.repeat(70_000) })).status).toBe(400)
  expect((await ask(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 'y'])))).status).toBe(400)
  expect((await ask({})).status).toBe(200)
})
