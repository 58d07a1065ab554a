import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createVirtualClock, settle, type VirtualClock } from '../../test/support/clocks.ts'
import { createQueue } from './queue.ts'

const keys = fc.constantFrom('a/1', 'a/2', 'a/3', 'b/1', 'c/1')
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), key: keys, ms: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('add' as const), key: keys, ms: fc.integer({ min: 0, max: 300 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 200 }) }) },
)
/** Durations and results of successive runs of the work. */
const runs = fc.array(fc.record({ takesMs: fc.integer({ min: 0, max: 120 }), ends: fc.constantFrom('well', 'badly', 'again') }), {
  maxLength: 30,
})
const concurrency = fc.integer({ min: 1, max: 4 })

/** Work that follows a script, then always succeeds at once. It checks the rules of the queue in each run. */
function scriptedWork(clock: VirtualClock, script: { takesMs: number; ends: string }[], limit: number) {
  const running = new Set<string>()
  const lastStart = new Map<string, number>()
  const seen = { starts: 0, broken: [] as string[], closed: false, tick: 0 }

  async function work(key: string) {
    const { takesMs, ends } = script.shift() ?? { takesMs: 0, ends: 'well' }
    if (running.has(key)) seen.broken.push(`${key} twice at a time`)
    if (seen.closed) seen.broken.push(`${key} after close`)
    running.add(key)
    if (running.size > limit) seen.broken.push('more at once than allowed')
    seen.starts += 1
    lastStart.set(key, (seen.tick += 1))
    if (takesMs > 0) await new Promise<void>((resolve) => clock.after(takesMs, resolve))
    running.delete(key)
    if (ends === 'badly') throw new Error('as scripted')
    return ends === 'again' ? { requeueAfterMs: 70 } : {}
  }
  return { work, lastStart, seen, running }
}

test('whatever the schedule, each key runs after its last add, and never twice at a time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), runs, concurrency, async (steps, script, limit) => {
      const clock = createVirtualClock()
      const { work, lastStart, seen } = scriptedWork(clock, [...script], limit)
      const lastAdd = new Map<string, number>()
      await using queue = createQueue({ concurrency: limit, work, clock, group: (key) => key.slice(0, 1) })
      for (const one of steps) {
        if (one.do === 'advance') await clock.advance(one.ms)
        else {
          lastAdd.set(one.key, (seen.tick += 1))
          queue.addAfter(one.key, one.ms)
        }
      }
      await clock.advance(600_000)
      expect(seen.broken).toEqual([])
      for (const [key, added] of lastAdd) expect(lastStart.get(key)).toBeGreaterThan(added)
      expect(clock.pending()).toBe(0)
    }),
    { numRuns: 300 },
  )
})

test('nothing runs after close, and close waits for all that does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), runs, concurrency, async (steps, script, limit) => {
      const clock = createVirtualClock()
      const { work, seen, running } = scriptedWork(clock, [...script], limit)
      const queue = createQueue({ concurrency: limit, work, clock })
      for (const one of steps) {
        if (one.do === 'advance') await clock.advance(one.ms)
        else queue.addAfter(one.key, one.ms)
      }
      const closing = queue.close()
      seen.closed = true
      let left: number | undefined
      void closing.then(() => (left = running.size))
      for (const one of steps) if (one.do === 'add') queue.addAfter(one.key, one.ms)
      await clock.advance(600_000)
      await closing
      expect(left).toBe(0)
      expect(seen.broken).toEqual([])
    }),
    { numRuns: 200 },
  )
})

test('the n-th key of a group is taken within n rounds of all groups, however long the other groups are', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(sizes, fc.infiniteStream(fc.nat()), async (counts, random) => {
      const clock = createVirtualClock()
      const order: string[] = []
      const work = async (key: string) => {
        if (key === 'first') await new Promise<void>((resolve) => clock.after(1, resolve))
        else order.push(key)
        return {}
      }
      await using queue = createQueue({ concurrency: 1, work, clock, group: (key) => key.split('/')[0] ?? '' })
      queue.add('first')
      const added = shuffled(
        counts.map((count, group) => Array.from({ length: count }, (_, n) => `${group}/${n}`)),
        random,
      )
      added.forEach((key) => {
        queue.add(key)
      })
      await clock.advance(1)
      await settle()
      expect(order).toHaveLength(added.length)
      for (const [at, key] of order.entries()) {
        const [, n = ''] = key.split('/')
        expect(at).toBeLessThan((Number(n) + 1) * counts.length)
      }
    }),
  )
})

/** Keys of all groups in a random order that keeps the order within each group. */
function shuffled(groups: string[][], random: fc.Stream<number>): string[] {
  const left = groups.map((keys) => [...keys])
  const all: string[] = []
  for (const pick of random.take(groups.flat().length)) {
    const open = left.filter((keys) => keys.length > 0)
    const key = open[pick % open.length]?.shift()
    if (key !== undefined) all.push(key)
  }
  return all
}
