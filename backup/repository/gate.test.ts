import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createGate } from './gate.ts'

const late = () => new Error('late')
const gate = () => createGate({ parallel: 2, limitMs: 1_000, late })

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('the gate runs two operations at a time, in their order, and leaves no timer', async () => {
  const run = gate()
  const events: string[] = []
  const operation = async (name: string) => {
    events.push(`+${name}`)
    await Promise.resolve()
    events.push(`-${name}`)
    return name
  }
  expect(await Promise.all(['a', 'b', 'c', 'd'].map((name) => run(() => operation(name))))).toEqual(['a', 'b', 'c', 'd'])
  expect(events.slice(0, 2)).toEqual(['+a', '+b'])
  expect(events.indexOf('+c')).toBeGreaterThan(events.indexOf('-a'))
  expect(vi.getTimerCount()).toBe(0)
})

test('a failed operation gives its slot to the next one', async () => {
  const run = gate()
  const failing = Array.from({ length: 3 }, () => run(() => Promise.reject(new Error('failed'))).catch(String))
  expect(await Promise.all([...failing, run(() => Promise.resolve('done'))])).toEqual([
    ...failing.map(() => 'Error: failed'),
    'done',
  ])
})

test('operations that hang fail in time, those behind them too, and keep their slots until they end', async () => {
  const run = gate()
  const hung = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const undone: string[] = []
  const first = hung.map(({ promise }) =>
    run(
      () => promise,
      async (result) => void undone.push(result),
    ).catch(String),
  )
  let begun = 0
  const begin = async () => (begun += 1)
  const behind = run(begin).catch(String)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await Promise.all([...first, behind])).toEqual(['Error: late', 'Error: late', 'Error: late'])
  const later = run(begin).catch(String)
  await vi.advanceTimersByTimeAsync(1_000)
  expect({ later: await later, begun }).toEqual({ later: 'Error: late', begun: 0 })

  hung[0]?.resolve('a handle')
  await vi.advanceTimersByTimeAsync(0)
  expect({ undone, next: await run(begin) }).toEqual({ undone: ['a handle'], next: 1 })
})
