import { describe, expect, test } from 'vitest'
import { Budget, FIRST_WINDOW_BYTES, firstWindow, MAX_WINDOW_BYTES, ReceiveWindow, LineShare } from './receive-window.ts'

const FAR_MS = 50

/** Reads like a client that fills its window once per round trip. */
function readOn(window: ReceiveWindow, rounds: number, roundTripMs: number): void {
  let now = 0
  for (let round = 0; round < rounds; round += 1) {
    const bytes = window.size / 2
    now += roundTripMs / 2
    expect(window.arrived(bytes)).toBe(true)
    window.read(bytes)
    expect(window.grant(now, roundTripMs, 1)).toBeGreaterThanOrEqual(bytes)
  }
}

describe('a receive window', () => {
  test('is granted again when half of it was read', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(0), 0)
    window.arrived(FIRST_WINDOW_BYTES)
    window.read(FIRST_WINDOW_BYTES / 2 - 1)
    expect(window.grant(1, 1, 1)).toBe(0)
    window.read(1)
    expect(window.grant(2, 1, 1)).toBe(FIRST_WINDOW_BYTES / 2)
  })

  test('reports more bytes than it granted', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(0), 0)
    expect(window.arrived(FIRST_WINDOW_BYTES)).toBe(true)
    expect(window.arrived(1)).toBe(false)
  })

  test('grows to at most 16 MiB for a distant client', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(64 * 1024 * 1024), 0)
    readOn(window, 20, FAR_MS)
    expect(window.size).toBe(MAX_WINDOW_BYTES)
  })

  test('does not grow for a nearby client, or without memory in the budget', () => {
    const near = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(64 * 1024 * 1024), 0)
    readOn(near, 20, 0.2)
    const poor = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(FIRST_WINDOW_BYTES * 2), 0)
    readOn(poor, 20, FAR_MS)
    expect([near.size, poor.size]).toEqual([FIRST_WINDOW_BYTES, FIRST_WINDOW_BYTES * 2])
  })

  test('returns its growth to the budget when its reader is slow, or at the end', () => {
    const budget = new Budget(FIRST_WINDOW_BYTES)
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, budget, 0)
    readOn(window, 4, FAR_MS)
    expect(budget.take(1)).toBe(false)
    window.arrived(FIRST_WINDOW_BYTES)
    window.read(FIRST_WINDOW_BYTES)
    window.shrink()
    expect(window.size).toBe(FIRST_WINDOW_BYTES)
    window.release()
    expect(budget.take(FIRST_WINDOW_BYTES)).toBe(true)
    expect(budget.take(1)).toBe(false)
  })

  test('is shared by the active channels of a nearby client, and whole again afterwards', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(0), 0)
    const sizes = [1, 2, 4, 8, 100, 1, 1, 1, 1].map((drawing, at) => {
      // As much as allowed: a grant is never withdrawn.
      const bytes = window.size
      expect(window.arrived(bytes)).toBe(true)
      window.read(bytes)
      expect(window.grant(at, 0.2, drawing)).toBe(window.size)
      return window.size / 1024
    })
    expect(sizes).toEqual([256, 256, 128, 64, 64, 256, 256, 256, 256])
    window.release()
  })

  test('never grants a negative number: a reduction is taken from bytes that were read', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(0), 0)
    window.arrived(FIRST_WINDOW_BYTES)
    window.read(FIRST_WINDOW_BYTES / 2)
    expect([window.grant(1, 0.2, 8), window.size]).toEqual([0, FIRST_WINDOW_BYTES / 2])
    window.read(FIRST_WINDOW_BYTES / 2)
    expect([window.grant(2, 0.2, 8), window.size]).toEqual([64 * 1024, 64 * 1024])
  })

  test('uses no budget when smaller than at first', () => {
    const budget = new Budget(1)
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, budget, 0)
    window.arrived(FIRST_WINDOW_BYTES)
    window.read(FIRST_WINDOW_BYTES)
    window.grant(1, 0.2, 8)
    window.shrink()
    window.release()
    expect([budget.take(1), budget.take(1)]).toEqual([true, false])
  })

  test('is not reduced for a distant client', () => {
    const window = new ReceiveWindow(FIRST_WINDOW_BYTES, new Budget(0), 0)
    window.arrived(FIRST_WINDOW_BYTES)
    window.read(FIRST_WINDOW_BYTES)
    expect(window.grant(1, FAR_MS, 8)).toBe(FIRST_WINDOW_BYTES)
  })

  test('is smaller at first when there are many channels', () => {
    const all = 32 * 1024 * 1024
    expect([0, 127, 255, 999].map((channels) => firstWindow(channels, all))).toEqual([262_144, 262_144, 131_072, 33_554])
  })
})

test('counts each channel that was granted window recently, once', () => {
  const share = new LineShare()
  const [a, b, c] = [{}, {}, {}]
  expect([share.drawing(a, 0), share.drawing(b, 10), share.drawing(a, 20), share.drawing(c, 30)]).toEqual([1, 2, 2, 3])
})

test('drops channels that stopped, and keeps those between two grants', () => {
  const share = new LineShare()
  const [a, b] = [{}, {}]
  share.drawing(a, 0)
  share.drawing(b, 10)
  // The next period has just begun: the count of the last one still applies.
  expect(share.drawing(a, 55)).toBe(2)
  expect(share.drawing(a, 110)).toBe(1)
  share.drawing(b, 120)
  // After a long pause the last count is outdated.
  expect(share.drawing(a, 10_000)).toBe(1)
})
