import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { drainEvenly, type DrainingClient } from './drain.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function crowd(size: number, busy: (index: number) => boolean = () => false) {
  const said: string[] = []
  const state = { busy }
  const clients = Array.from({ length: size }, (_, index): DrainingClient => ({
    get busy() {
      return state.busy(index)
    },
    retire: () => void said.push(`retire ${index}`),
    restore: () => void said.push(`restore ${index}`),
    dismiss: () => void said.push(`dismiss ${index}`),
  }))
  return { clients, said, state, dismissed: () => said.filter((text) => text.startsWith('dismiss')).length }
}

test('a drain without clients resolves at once', async () => {
  await drainEvenly([], { overMs: 10_000, patienceMs: 1_000 })
})

test('a drain without time dismisses all clients at once', async () => {
  const { clients, said } = crowd(3)
  await drainEvenly(clients, { overMs: 0, patienceMs: 0 })
  expect(said).toHaveLength(6)
})

test('clients are dismissed one after the other over the whole time', async () => {
  const { clients, dismissed } = crowd(100)
  const over = drainEvenly(clients, { overMs: 10_000, patienceMs: 1_000 })
  await vi.advanceTimersByTimeAsync(2_500)
  expect(dismissed()).toBeGreaterThan(20)
  expect(dismissed()).toBeLessThan(30)
  await vi.advanceTimersByTimeAsync(7_500)
  await over
  expect(dismissed()).toBe(100)
})

test('a busy client is dismissed when its requests have ended', async () => {
  const { clients, said, state } = crowd(2, () => true)
  const over = drainEvenly(clients, { overMs: 0, patienceMs: 1_500 })
  await vi.advanceTimersByTimeAsync(500)
  expect(said).toEqual(['retire 0', 'retire 1'])
  state.busy = (index) => index === 0
  await vi.advanceTimersByTimeAsync(500)
  expect(said).toEqual(['retire 0', 'retire 1', 'dismiss 1'])
  await vi.advanceTimersByTimeAsync(600)
  await over
  expect(said.at(-1)).toBe('dismiss 0')
})

test('a client with long requests is restored, and serves until its time is nearly over', async () => {
  const { clients, said, state } = crowd(2, () => true)
  const over = drainEvenly(clients, { overMs: 0, patienceMs: 10_000 })
  await vi.advanceTimersByTimeAsync(950)
  expect(said).toEqual(['retire 0', 'retire 1'])
  await vi.advanceTimersByTimeAsync(7_900)
  expect(said.slice(2)).toEqual(['restore 0', 'restore 1'])
  await vi.advanceTimersByTimeAsync(200)
  expect(said.slice(4)).toEqual(['retire 0', 'retire 1'])
  state.busy = (index) => index === 0
  await vi.advanceTimersByTimeAsync(100)
  expect(said.slice(6)).toEqual(['dismiss 1'])
  await vi.advanceTimersByTimeAsync(1_000)
  await over
  expect(said.slice(7)).toEqual(['dismiss 0'])
})
