import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../shared/timers.ts'
import { createVirtualClock, settle, type VirtualClock } from '../../test/support/clocks.ts'
import { createQueue, type QueueDeps } from './queue.ts'

/** A queue in virtual time whose work takes `takesMs` and is recorded as `key@time of start`. */
function start(options: Partial<QueueDeps> & { takesMs?: number } = {}) {
  const clock = createVirtualClock()
  const starts: string[] = []
  const work = async (key: string) => {
    starts.push(`${key}@${clock.now()}`)
    await sleep(clock, options.takesMs ?? 0)
    return {}
  }
  const queue = createQueue({ concurrency: 1, clock, random: () => 1, work, ...options })
  return { clock, starts, queue }
}

function sleep(clock: VirtualClock, ms: number): Promise<void> {
  return ms === 0
    ? Promise.resolve()
    : new Promise((resolve) => {
        clock.after(ms, resolve)
      })
}

test('a key that waits already is not added again', async () => {
  const { queue, clock, starts } = start({ takesMs: 10 })
  for (const key of ['a', 'b', 'b', 'b']) queue.add(key)
  await clock.advance(1000)
  expect(starts).toEqual(['a@0', 'b@10'])
})

test('a key that is added while it is worked on runs once more afterwards', async () => {
  const { queue, clock, starts } = start({ takesMs: 10, concurrency: 4 })
  queue.add('a')
  await clock.advance(5)
  queue.add('a')
  queue.add('a')
  await clock.advance(1000)
  expect(starts).toEqual(['a@0', 'a@10'])
})

test.each([
  { does: 'the earlier of two delays', delays: [500, 200, 900], at: 200 },
  { does: 'an add over any delay', delays: [500, 0], at: 0 },
])('a key runs once, after $does', async ({ delays, at }) => {
  const { queue, clock, starts } = start()
  for (const ms of delays) queue.addAfter('a', ms)
  await clock.advance(10_000)
  expect(starts).toEqual([`a@${at}`])
})

test('a delay that passes while the key is worked on is kept', async () => {
  const { queue, clock, starts } = start({ takesMs: 100 })
  queue.add('a')
  queue.addAfter('a', 50)
  await clock.advance(70)
  queue.addAfter('a', 500)
  await clock.advance(10_000)
  expect(starts).toEqual(['a@0', 'a@100'])
})

test('a throw waits twice as long each time, up to the maximum, and a success forgets it', async () => {
  const outcomes = ['throw', 'throw', 'throw', 'throw', 'ok', 'throw', 'ok']
  const starts: number[] = []
  const clock = createVirtualClock()
  const work = async () => {
    starts.push(clock.now())
    if (outcomes.shift() === 'throw') throw new Error('not yet')
    return outcomes.length > 0 ? { requeueAfterMs: 150 } : {}
  }
  const { queue } = start({ clock, work, backoff: { baseMs: 50, maxMs: 150 } })
  queue.add('a')
  await clock.advance(10_000)
  expect(starts).toEqual([0, 50, 150, 300, 450, 600, 650])
})

test('a key that asks for it is run again after its time', async () => {
  const results = [{ requeueAfterMs: 300 }, {}]
  const starts: number[] = []
  const clock = createVirtualClock()
  const work = async () => {
    starts.push(clock.now())
    return results.shift() ?? {}
  }
  const { queue } = start({ clock, work })
  queue.add('a')
  await clock.advance(10_000)
  expect(starts).toEqual([0, 300])
})

test('groups take turns, however many keys one of them has', async () => {
  const { queue, clock, starts } = start({ takesMs: 1, group: (key) => key.slice(0, 1) })
  for (let i = 0; i < 10_000; i += 1) queue.add(`x${i}`)
  queue.add('y')
  queue.add('z')
  await clock.advance(5)
  expect(starts.slice(0, 5)).toEqual(['x0@0', 'x1@1', 'y@2', 'z@3', 'x2@4'])
})

test('close drops what waits and resolves when what runs has ended', async () => {
  const { queue, clock, starts } = start({ takesMs: 100, concurrency: 2 })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  queue.addAfter('d', 10)
  await settle()
  let closed = false
  const closing = queue.close().then(() => (closed = true))
  queue.add('e')
  queue.addAfter('f', 200)
  expect(clock.pending()).toBe(2)
  await clock.advance(99)
  expect(closed).toBe(false)
  await clock.advance(10_000)
  await closing
  expect(starts).toEqual(['a@0', 'b@0'])
  expect(clock.pending()).toBe(0)
})

test('close aborts the signal of running work, and can be called again', async () => {
  let seen: AbortSignal | undefined
  const work = async (_: string, signal: AbortSignal) => {
    seen = signal
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
    return {}
  }
  const { queue } = start({ work })
  queue.add('a')
  expect(seen?.aborted).toBe(false)
  await queue.close()
  await queue.close()
  expect(seen?.aborted).toBe(true)
})

test('reports how many keys are due and for how long they were', async () => {
  const depths: number[] = []
  const latencies: number[] = []
  const hooks = { onDepth: (depth: number) => depths.push(depth), onLatency: (seconds: number) => latencies.push(seconds) }
  const { queue, clock } = start({ takesMs: 500, ...hooks })
  queue.add('a')
  queue.add('b')
  queue.addAfter('later', 5000)
  await clock.advance(1000)
  expect(depths).toEqual([1, 0, 1, 0])
  expect(latencies).toEqual([0, 0.5])
})

test('keys whose work never waits let the event loop turn', async () => {
  const { queue, starts } = start({ clock: systemClock })
  for (let key = 0; key < 1_000; key++) queue.add(String(key))
  const turns: number[] = []
  while (starts.length < 1_000) {
    await setImmediate()
    turns.push(starts.length)
  }
  expect(turns.length).toBeGreaterThanOrEqual(5)
  await queue.close()
})
