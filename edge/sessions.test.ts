import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Session, type Sessions, createSessions } from './sessions.ts'

const never = new AbortController().signal
const session = (id: string, channels = 0, hostname = 'a', since = 0): Session => ({
  ...{ id, hostname, channels, clientIp: '192.0.2.1', since },
  login: { authMethod: 'key', keyFingerprint: 'SHA256:x' },
  open: () => {
    throw new Error('not here')
  },
  ...{ notify: () => undefined, close: () => undefined },
})

describe('sessions', () => {
  test('select only the newest until older ones have answered', () => {
    const sessions = createSessions()
    const [old, recent] = [session('old'), session('recent', 5)]
    sessions.add(old)
    sessions.add(recent)
    expect(sessions.pick('a')).toBe(recent)
    sessions.confirm(old)
    expect(sessions.pick('a')).toBe(old)
    expect(sessions.of('a')).toEqual([recent, old])
    expect(sessions.count).toBe(2)
  })

  test('select the newest of equals', () => {
    const sessions = createSessions()
    const [old, recent] = [session('old', 3), session('recent', 3)]
    sessions.add(old)
    sessions.add(recent)
    sessions.confirm(old)
    expect(sessions.pick('a')).toBe(recent)
  })

  describe('that refused a channel', () => {
    beforeEach(() => vi.useFakeTimers())
    afterEach(() => vi.useRealTimers())

    const two = () => {
      const sessions = createSessions()
      const [old, recent] = [session('old', 7), session('recent')]
      sessions.add(old)
      sessions.add(recent)
      sessions.confirm(old)
      return { sessions, old, recent }
    }

    test('come after the others for ten seconds, however busy those are', () => {
      const { sessions, old, recent } = two()
      expect(sessions.pick('a')).toBe(recent)
      sessions.refused(recent)
      expect(sessions.pick('a')).toBe(old)
      vi.advanceTimersByTime(9_999)
      expect(sessions.pick('a')).toBe(old)
      vi.advanceTimersByTime(1)
      expect(sessions.pick('a')).toBe(recent)
    })

    test('are selected in the order of their refusals when all refused', () => {
      const { sessions, old, recent } = two()
      sessions.refused(old)
      vi.advanceTimersByTime(1)
      sessions.refused(recent)
      expect(sessions.pick('a')).toBe(old)
      expect(sessions.pick('a', new Set([old]))).toBe(recent)
      expect(sessions.pick('a', new Set([old, recent]))).toBeUndefined()
    })

    test('come before those that may be dead', () => {
      const sessions = createSessions()
      const [old, recent] = [session('old'), session('recent')]
      sessions.add(old)
      sessions.add(recent)
      sessions.refused(recent)
      expect(sessions.pick('a')).toBe(recent)
      expect(sessions.pick('a', new Set([recent]))).toBe(old)
    })

    test('lose their refusal with their session', () => {
      const { sessions, old, recent } = two()
      sessions.refused(recent)
      sessions.remove(recent)
      sessions.refused(recent)
      expect(sessions.of('a')).toEqual([old])
      sessions.add(recent)
      expect(sessions.pick('a')).toBe(recent)
    })
  })

  test('fall back to an older one that has not answered when the newest ends', () => {
    const sessions = createSessions()
    const [old, recent] = [session('old'), session('recent')]
    sessions.add(old)
    sessions.add(recent)
    sessions.remove(recent)
    expect(sessions.pick('a')).toBe(old)
    sessions.remove(old)
    sessions.remove(old)
    expect(sessions.pick('a')).toBeUndefined()
    expect(sessions.count).toBe(0)
  })

  test('count a session that is added twice once', () => {
    const sessions = createSessions()
    const one = session('one')
    sessions.add(one)
    sessions.add(one)
    expect(sessions.count).toBe(1)
  })

  describe('of an edge that was lost', () => {
    beforeEach(() => vi.useFakeTimers())
    afterEach(() => vi.useRealTimers())

    async function heldFor(sessions: Sessions): Promise<number> {
      const start = performance.now()
      const found = sessions.waitFor('a', 2_000, never)
      await vi.runAllTimersAsync()
      expect(await found).toBeUndefined()
      return performance.now() - start
    }

    test('hold requests for less than a second, for ten seconds', async () => {
      const sessions = createSessions()
      const one = session('one')
      sessions.add(one)
      sessions.lose(one)
      expect(await heldFor(sessions)).toBe(800)
      vi.advanceTimersByTime(10_000)
      expect(await heldFor(sessions)).toBe(2_000)
    })

    test('hold requests as usual once a client has reconnected', async () => {
      const sessions = createSessions()
      const [one, other] = [session('one'), session('other')]
      sessions.add(one)
      sessions.lose(one)
      sessions.add(other)
      sessions.remove(other)
      expect(await heldFor(sessions)).toBe(2_000)
    })

    test('leave the sessions of other edges selectable', () => {
      const sessions = createSessions()
      const [one, other] = [session('one'), session('other')]
      sessions.add(one)
      sessions.add(other)
      sessions.lose(other)
      expect(sessions.pick('a')).toBe(one)
    })
  })

  test('resolve each waiting request when a session comes', async () => {
    const sessions = createSessions()
    const waiting = [sessions.waitFor('a', 10_000, never), sessions.waitFor('a', 10_000, never)]
    const mine = session('mine')
    sessions.add(session('other', 0, 'b'))
    sessions.add(mine)
    expect(await Promise.all(waiting)).toEqual([mine, mine])
    expect(await sessions.waitFor('a', 0, never)).toBe(mine)
  })

  test('resolve a waiting request with undefined, in time or when it aborts', async () => {
    const sessions = createSessions()
    expect(await sessions.waitFor('a', 5, never)).toBeUndefined()
    const abort = new AbortController()
    const waiting = sessions.waitFor('a', 60_000, abort.signal)
    abort.abort()
    expect(await waiting).toBeUndefined()
    expect(await sessions.waitFor('a', 60_000, abort.signal)).toBeUndefined()
  })
})

describe('sessions of other edges', () => {
  const old = session('old', 0, 'a', 1)
  const recent = session('recent', 5, 'a', 2)

  test.each([
    { does: 'the older one joins later', order: [recent, old] },
    { does: 'the newer one joins later', order: [old, recent] },
  ])('have their place by age: $does', ({ order }) => {
    const sessions = createSessions()
    for (const one of order) sessions.join(one, undefined)
    expect(sessions.of('a')).toEqual([recent, old])
    expect(sessions.pick('a')).toBe(recent)
    sessions.hear(old, 'recent')
    expect(sessions.pick('a')).toBe(old)
  })

  test('share the load at once when they were added as having answered', () => {
    const sessions = createSessions()
    sessions.join(recent, undefined)
    sessions.join(old, 'recent')
    expect(sessions.pick('a')).toBe(old)
  })

  test('share the load when they answered before the newest was known here', () => {
    const sessions = createSessions()
    sessions.add(old)
    sessions.hear(old, 'recent')
    sessions.add(recent)
    expect(sessions.pick('a')).toBe(old)
    expect(sessions.heardAfter(old)).toBe('recent')
  })

  test('resolve waiting requests', async () => {
    const sessions = createSessions()
    const waiting = sessions.waitFor('a', 10_000, never)
    sessions.join(old, undefined)
    expect(await waiting).toBe(old)
  })
})
