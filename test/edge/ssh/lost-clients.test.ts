import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ClientChannel } from 'ssh2'
import { answered, rawVisitor } from '../../support/edge/raw-http.ts'
import { logIn, sendMessage, socketOf } from '../../support/edge/ssh2-client.ts'
import { startWholeEdge, type WholeEdge } from '../../support/edge/whole-edge.ts'
import { SOON } from '../../support/patience.ts'

/** Requests under way when their SSH client is lost or closes a channel. */

let edge: WholeEdge
beforeAll(async () => {
  edge = await startWholeEdge()
})
afterAll(() => edge[Symbol.asyncDispose]())

const HALF = 'HTTP/1.1 200 OK\r\n\r\nhalf'
const IN_CHUNKS = /\r\nTransfer-Encoding: chunked\r\n[^]*\r\n\r\n4\r\nhalf\r\n/

/** Serves a tunnel whose target begins a response that ends with its connection. Resolves when a visitor has its first half. */
async function halfway() {
  const own = await logIn(edge)
  let channel: ClientChannel | undefined
  await own.serve((opened) => {
    channel = opened
    opened.write(HALF)
  })
  const visitor = rawVisitor(
    edge.ports.http,
    `GET / HTTP/1.1\r\nHost: ${own.hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`,
  )
  await visitor.sees('half')
  if (!channel) throw new Error('the edge opened no channel')
  return { own, channel, visitor }
}

/** Message SSH_MSG_CHANNEL_CLOSE. */
const CLOSE = 97

test('a response ends at a channel that its client closes without an EOF', async () => {
  const { own, channel, visitor } = await halfway()
  const number = Buffer.alloc(4)
  number.writeUInt32BE((channel as unknown as { readonly outgoing: { readonly id: number } }).outgoing.id)
  sendMessage(own.client, Buffer.concat([Buffer.of(CLOSE), number]))
  const text = await visitor.over
  expect(text).toMatch(IN_CHUNKS)
  expect(text).toMatch(/half\r\n0\r\n\r\n$/)
  own[Symbol.dispose]()
})

test('a response has no last chunk when its client is lost', async () => {
  const { own, visitor } = await halfway()
  socketOf(own.client).destroy()
  expect(await visitor.over).not.toContain('\r\n0\r\n')
  await vi.waitFor(
    async () => expect((await edge.records(own.hostname)).requests).toMatchObject([{ reason: 'upstream_reset' }]),
    SOON,
  )
})

test('a GET moves from a lost client to another one', async () => {
  using staying = await logIn(edge)
  const { hostname } = staying
  await staying.serve((channel) => {
    channel.on('data', () => void channel.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nmoved'))
  })
  // The edge uses the newest session.
  using going = await logIn(edge, { username: hostname })
  let asked = false
  await going.serve((channel) => {
    channel.on('data', () => {
      asked = true
      socketOf(going.client).destroy()
    })
  })
  const request = `GET / HTTP/1.1\r\nHost: ${hostname}.${edge.domain}\r\nConnection: close\r\n\r\n`
  expect(await answered(edge.ports.http, request)).toMatch(/moved$/)
  expect(asked).toBe(true)
})
