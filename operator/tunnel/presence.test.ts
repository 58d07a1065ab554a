import { afterEach, expect, test, vi } from 'vitest'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { ConnectionRecord } from '../../journal/port.ts'
import { createCacheView } from '../../store/cache-view.ts'
import type { Store } from '../../store/port.ts'
import { readyCondition, tunnel } from '../../test/builders/resources.ts'
import { tunnelIndexes } from './indexes.ts'
import { createPresence, presenceOf } from './presence.ts'

const POLL_MS = 10_000

afterEach(() => {
  vi.useRealTimers()
})

test.each([
  { open: [], says: { connected: false, sessions: 0 } },
  { open: [{ at: 0 }], says: { connected: true, sessions: 1, lastConnectedAt: '1970-01-01T00:00:00.000Z' } },
  { open: [{ at: 5 }, { at: 2_000 }], says: { connected: true, sessions: 2, lastConnectedAt: '1970-01-01T00:00:02.000Z' } },
])('$open.length open sessions are counted, with the time of the newest', ({ open, says }) => {
  expect(presenceOf(open)).toEqual(says)
})

const there = { connected: true, sessions: 1, lastConnectedAt: '1970-01-01T00:00:00.000Z' }
const gone = { ...there, connected: false, sessions: 0 }
const named = (name: string, status?: Tunnel['status']) => tunnel({ metadata: { name, uid: name }, status })

test('only statuses that differ from the journal are written', async () => {
  vi.useFakeTimers()
  const tunnels = createCacheView<typeof Tunnel>(tunnelIndexes)
  const missing = { ...there, conditions: [readyCondition('False', 'EndpointMissing')] }
  tunnels.replace([named('never'), named('came'), named('came-again', gone), named('stays', there), named('went', there)])
  tunnels.put(named('without-endpoint', missing))
  const open = ['came', 'came-again', 'stays', 'deleted', 'without-endpoint'].map(
    (of) => ({ tunnel: of, at: 0 }) as ConnectionRecord,
  )
  const written = new Map<string, unknown>()
  const patchStatus = async (_kind: unknown, { name }: { readonly name: string }, status: unknown) => {
    written.set(name, status)
  }
  const stop = new AbortController()
  const presence = createPresence({
    ...{ tunnels, store: { patchStatus } as unknown as Pick<Store, 'patchStatus'>, journal: { openSessions: async () => open } },
    onError: (error) => expect.unreachable(String(error)),
  })
  const running = presence.run(stop.signal)
  await vi.advanceTimersByTimeAsync(POLL_MS)
  stop.abort()
  await running
  const none = { connected: false, sessions: 0 }
  expect(Object.fromEntries(written)).toEqual({ came: there, 'came-again': there, went: none, 'without-endpoint': none })
})

test('a slow poll of the journal is not joined by another', async () => {
  vi.useFakeTimers()
  const answer = Promise.withResolvers<ConnectionRecord[]>()
  const openSessions = vi.fn(() => answer.promise)
  const stop = new AbortController()
  const presence = createPresence({
    ...{ tunnels: createCacheView<typeof Tunnel>(tunnelIndexes), store: { patchStatus: () => expect.unreachable() } },
    journal: { openSessions },
    onError: (error) => expect.unreachable(String(error)),
  })
  const running = presence.run(stop.signal)
  await vi.advanceTimersByTimeAsync(5 * POLL_MS)
  answer.resolve([])
  await vi.advanceTimersByTimeAsync(POLL_MS / 2)
  expect(openSessions).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(POLL_MS)
  expect(openSessions).toHaveBeenCalledTimes(2)
  stop.abort()
  await running
})
