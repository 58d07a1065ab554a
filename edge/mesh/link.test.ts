import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import type { Session } from '../sessions.ts'
import { Budget } from '../channels/receive-window.ts'
import { dataHeader, Frame, frame } from './frames.ts'
import { MESH_LIMITS } from './limits.ts'
import { type LinkOwner, MeshLink } from './link.ts'
import { encodeMessage, encodeNotice, encodeOpen, type Hello, VERSION } from './messages.ts'
import { RemoteSession } from './directory.ts'

const hello = (edge: string): Hello => ({ version: VERSION, endpoint: 'main', edge, instance: randomUUID() })
const sessionId = randomUUID()

const accepted: ((socket: Socket) => void)[] = []
const server = createServer((socket) => accepted.shift()?.(socket)).listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => void server.close())

/** Link, and the plain socket of its other end. */
async function linked(owner: Partial<LinkOwner> = {}) {
  const taken = new Promise<Socket>((resolve) => void accepted.push(resolve))
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => far.destroy())
  const near = await taken
  const ends: string[] = []
  const link = new MeshLink(near, false, {
    self: hello('edge-a'),
    limits: MESH_LIMITS,
    growth: new Budget(1_000_000),
    owner: {
      sessionOf: () => undefined,
      greeted: () => undefined,
      changed: () => undefined,
      drained: () => undefined,
      failed: () => undefined,
      ended: (_link, why) => void ends.push(why),
      ...owner,
    },
  })
  let heard = Buffer.alloc(0)
  far.on('data', (chunk: Buffer) => (heard = Buffer.concat([heard, chunk])))
  return { link, far, near, ends, heard: () => heard }
}

/** Session whose channels open at once and echo their data. */
const echo: Partial<LinkOwner> = {
  sessionOf: (id) =>
    id === sessionId
      ? {
          ...{ id, hostname: '0123456789abcdef', clientIp: '127.0.0.1', since: 0, channels: 0 },
          login: { authMethod: 'token', passwordId: 'x' },
          open(_origin, events) {
            queueMicrotask(() => events.opened())
            return {
              write(chunk) {
                queueMicrotask(() => events.data(Buffer.from(chunk)))
                return true
              },
              ...{ end: () => undefined, destroy: () => undefined, pause: () => undefined, resume: () => undefined },
            }
          },
          ...{ notify: () => undefined, close: () => undefined },
        }
      : undefined,
}

const greeting = () => frame(Frame.hello, 0, encodeMessage(hello('edge-b')))
const open = (session: string) => encodeOpen({ window: 100_000, origin: { address: '203.0.113.1', port: 1 }, session })
const soon = { timeout: 60_000, interval: 5 }

test('a peer opens a channel of a local session, which carries bytes both ways', async () => {
  const { far, heard, near } = await linked(echo)
  onTestFinished(() => void near.destroy())
  far.write(Buffer.concat([greeting(), frame(Frame.open, 7, open(sessionId)), dataHeader(0, 4), Buffer.from('ping')]))
  await vi.waitFor(() => expect(heard().subarray(-12)).toEqual(Buffer.concat([dataHeader(7, 4), Buffer.from('ping')])), soon)
})

test.each([
  { does: 'data on an unknown channel', sent: [dataHeader(99, 1), Buffer.from('x')] },
  { does: 'a second hello', sent: [greeting()] },
  { does: 'an invalid message', sent: [frame(Frame.sessions, 0, Buffer.from('[]'))] },
  {
    does: 'more data than a window',
    sent: [
      frame(Frame.open, 7, open(sessionId)),
      ...Array.from({ length: 12 }, () => [dataHeader(0, 65_536), Buffer.alloc(65_536)]).flat(),
    ],
    owner: { sessionOf: () => deaf },
  },
])('$does ends the link', async ({ sent, owner = echo }) => {
  const { far, ends } = await linked(owner)
  far.write(Buffer.concat([greeting(), ...sent]))
  await vi.waitFor(() => expect(ends).toEqual(['protocol']), soon)
})

/** Session whose channels accept no data. */
const deaf: Session = {
  ...{ id: sessionId, hostname: '0123456789abcdef', clientIp: '127.0.0.1', since: 0, channels: 0 },
  login: { authMethod: 'token', passwordId: 'x' },
  open(_origin, events) {
    queueMicrotask(() => events.opened())
    return { write: () => false, end: () => undefined, destroy: () => undefined, pause: () => undefined, resume: () => undefined }
  },
  ...{ notify: () => undefined, close: () => undefined },
}

test('a notice of a peer goes to the session that it names, and to no other', async () => {
  const notices: string[] = []
  const sessionOf = (id: string) =>
    id === sessionId ? { ...deaf, notify: (line: string) => void notices.push(line) } : undefined
  const { far, near } = await linked({ sessionOf })
  onTestFinished(() => void near.destroy())
  const notice = (session: string, line: string) => frame(Frame.notice, 0, encodeNotice({ session, line }))
  far.write(Buffer.concat([greeting(), notice(randomUUID(), 'for another'), notice(sessionId, 'x'.repeat(1_000))]))
  await vi.waitFor(() => expect(notices).toEqual(['x'.repeat(400)]), soon)
})

test('a notice of a remote session is sent to its edge', async () => {
  const { link, near, heard } = await linked()
  onTestFinished(() => void near.destroy())
  const opener = { open: () => expect.fail('no channel'), missing: () => undefined, notify: link.notify.bind(link) }
  const remote = new RemoteSession({ ...deaf, id: sessionId }, opener)
  remote.notify('a line')
  const sent = frame(Frame.notice, 0, encodeNotice({ session: sessionId, line: 'a line' }))
  await vi.waitFor(() => expect(heard().subarray(-sent.length)).toEqual(sent), soon)
})

test('a channel to an unknown session is refused as session_lost', async () => {
  const { far, heard, near } = await linked(echo)
  onTestFinished(() => void near.destroy())
  far.write(Buffer.concat([greeting(), frame(Frame.open, 7, open(randomUUID()))]))
  await vi.waitFor(() => expect(heard().subarray(-9)).toEqual(frame(Frame.refused, 7, Buffer.from([3]))), soon)
})

test('random frames of a peer end at most the link', async () => {
  const number = fc.integer({ min: 0, max: 3 })
  const said = fc.oneof(
    fc
      .tuple(fc.constantFrom(Frame.ping, Frame.pong, Frame.end, Frame.close), number)
      .map(([type, channel]) => frame(type, channel)),
    number.map((channel) => frame(Frame.open, channel, open(sessionId))),
    fc
      .tuple(number, fc.uint8Array({ minLength: 8, maxLength: 8 }))
      .map(([channel, bytes]) => frame(Frame.opened, channel, Buffer.from(bytes))),
    fc.tuple(number, fc.nat(255)).map(([channel, why]) => frame(Frame.refused, channel, Buffer.from([why]))),
    fc.uint8Array({ minLength: 3, maxLength: 80 }).map((bytes) => frame(Frame.notice, 0, Buffer.from(bytes))),
    number.map((channel) => frame(Frame.window, channel, Buffer.from([255, 255, 255, 255]))),
    fc
      .tuple(number, fc.integer({ min: 1, max: 300 }))
      .map(([channel, size]) => Buffer.concat([dataHeader(channel, size), Buffer.alloc(size)])),
    fc.uint8Array({ minLength: 1, maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(said, { maxLength: 30 }), async (messages) => {
      const { link, far, ends } = await linked(echo)
      const gone = once(far, 'close')
      far.end(Buffer.concat([greeting(), ...messages]))
      await gone
      await vi.waitFor(() => expect(ends).toHaveLength(1), soon)
      expect(link.channels).toBe(0)
    }),
    { numRuns: 60 },
  )
})
