import { expect, test } from 'vitest'
import type { ChannelEvents } from '../../channels/channel.ts'
import type { Session } from '../../sessions.ts'
import { type UpstreamConnection, createPools, lend, isReplayable, leavesReusableConnection } from './pool.ts'
import { isRejection, readRequestHead, type RequestHead } from '../head/request-head.ts'

const origin = { address: '192.0.2.1', port: 1 }
const user = {
  upstreamData: () => undefined,
  upstreamDrained: () => undefined,
  upstreamEnded: () => undefined,
  upstreamClosed: () => undefined,
}

function pools() {
  let time = 0
  const channels: ChannelEvents[] = []
  const closed: number[] = []
  const session: Session = {
    ...{ id: 'a', hostname: 'b', clientIp: 'c', since: 0, channels: 0, notify: () => undefined, close: () => undefined },
    login: { authMethod: 'token', passwordId: 'd' },
    open(_origin, events) {
      const index = channels.push(events) - 1
      const nothing = () => undefined
      return { write: () => true, end: nothing, pause: nothing, resume: nothing, destroy: () => void closed.push(index) }
    },
  }
  const pool = createPools({ now: () => time, idleMs: 1000, spareMs: 60_000 })
  return {
    ...{ pool, channels, closed },
    pass: (ms: number) => (time += ms),
    take: (use: 'replayable' | 'once' | 'fresh' = 'replayable', target?: string) => {
      const connection = pool.take(session, { origin, use, target })
      lend(connection, user)
      return connection
    },
  }
}

test('the connection given back last is taken first', () => {
  const { pool, take } = pools()
  const [first, second] = [take(), take()]
  pool.give(first)
  pool.give(second)
  expect([take(), take()]).toEqual([second, first])
})

test('connections idle for a second are closed except one, and that one after a minute', () => {
  const { pool, take, pass, closed } = pools()
  const connections: UpstreamConnection[] = [take(), take(), take()]
  for (const connection of connections) pool.give(connection)
  pass(1000)
  pool.sweep()
  expect([closed, pool.idle]).toEqual([[0, 1], 1])
  pass(59_000)
  pool.sweep()
  expect([closed, pool.idle]).toEqual([[0, 1, 2], 0])
})

test('a request that must not be sent twice gets no connection that was idle', () => {
  const { pool, take, pass } = pools()
  const connection = take()
  pool.give(connection)
  pass(1001)
  expect(take('once')).not.toBe(connection)
  expect(take('replayable')).toBe(connection)
})

test('a request that is sent again gets a new connection', () => {
  const { pool, take } = pools()
  const connection = take()
  pool.give(connection)
  expect(take('fresh')).not.toBe(connection)
})

test.each([
  { does: 'that receives unrequested bytes', happens: (events: ChannelEvents) => events.data(Buffer.from('x')), closed: [0] },
  { does: 'whose target ends', happens: (events: ChannelEvents) => events.ended(), closed: [0] },
  { does: 'that is closed', happens: (events: ChannelEvents) => events.closed({ lost: true }), closed: [] },
])('an idle connection $does is not taken again', ({ happens, closed: wanted }) => {
  const { pool, take, channels, closed } = pools()
  const connection = take()
  pool.give(connection)
  const [events] = channels
  if (events) happens(events)
  expect([pool.idle, closed]).toEqual([0, wanted])
  expect(take()).not.toBe(connection)
})

test('a connection to an earlier target is not reused, whether it was idle or in use when the target changed', () => {
  const { pool, take, closed } = pools()
  const [waited, inUse] = [take('replayable', 'localhost:1'), take('replayable', 'localhost:1')]
  pool.give(waited)
  take('replayable', 'localhost:2')
  expect(closed).toEqual([0])
  pool.give(inUse)
  expect([closed, pool.idle]).toEqual([[0, 1], 0])
})

test('connections are reused again two seconds after a change of target', () => {
  const { pool, take, pass } = pools()
  pool.give(take('replayable', 'localhost:1'))
  pool.give(take('replayable', undefined))
  expect(pool.idle).toBe(0)
  pass(2000)
  const connection = take()
  pool.give(connection)
  expect(take()).toBe(connection)
})

function head(method: string, fields: string): RequestHead {
  const read = readRequestHead(`${method} / HTTP/1.1\r\nHost: a.test\r\n${fields}`)
  if (isRejection(read)) throw new Error(read.detail)
  return read
}

const LENGTH = 'Content-Length: 1\r\n'
const CHUNKS = 'Transfer-Encoding: chunked\r\n'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: foo\r\n'

test.each([
  { method: 'GET', fields: '', replayable: true, clean: true },
  { method: 'HEAD', fields: '', replayable: true, clean: true },
  { method: 'OPTIONS', fields: '', replayable: true, clean: true },
  { method: 'TRACE', fields: '', replayable: true, clean: true },
  { method: 'DELETE', fields: '', replayable: true, clean: true },
  { method: 'PUT', fields: '', replayable: true, clean: true },
  { method: 'PUT', fields: 'Content-Length: 0\r\n', replayable: true, clean: true },
  { method: 'POST', fields: '', replayable: false, clean: true },
  { method: 'PATCH', fields: '', replayable: false, clean: true },
  { method: 'get', fields: '', replayable: false, clean: true },
  { method: 'GET', fields: UPGRADE, replayable: false, clean: true },
  { method: 'GET', fields: LENGTH, replayable: false, clean: false },
  { method: 'GET', fields: CHUNKS, replayable: false, clean: false },
  { method: 'DELETE', fields: LENGTH, replayable: false, clean: false },
  { method: 'PUT', fields: LENGTH, replayable: false, clean: true },
  { method: 'POST', fields: CHUNKS, replayable: false, clean: true },
])(
  '$method with "$fields" may be sent again: $replayable, may be followed by another: $clean',
  ({ method, fields, replayable, clean }) => {
    const read = head(method, fields)
    expect([isReplayable(read), leavesReusableConnection(read)]).toEqual([replayable, clean])
  },
)
