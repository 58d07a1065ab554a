import { expect, test } from 'vitest'
import { createStalls } from './stalls.ts'

function stallsAt() {
  let now = 1_000
  const pass = (ms: number) => void (now += ms)
  return { stalls: createStalls(() => now), pass }
}

test('a stalled removal lasts from its first failure for the same cause until it is done', () => {
  const { stalls, pass } = stallsAt()
  stalls.removalStalled('a', 'others')
  pass(5_000)
  stalls.removalStalled('a', 'others')
  stalls.removalStalled('b', 'own')
  pass(1_000)
  expect([stalls.lastedMs('others'), stalls.lastedMs('own')]).toEqual([6_000, 1_000])
  stalls.removalStalled('a', 'own')
  expect(stalls.lastedMs('others')).toBe(0)
  stalls.removalDone('a')
  stalls.removalDone('b')
  expect(stalls.lastedMs('own')).toBe(0)
})

test('failed locks last from the first one, and are forgotten a minute after the last one', () => {
  const { stalls, pass } = stallsAt()
  stalls.lockFailed()
  pass(30_000)
  stalls.lockFailed()
  pass(30_000)
  expect(stalls.lastedMs('others')).toBe(60_000)
  pass(30_000)
  expect(stalls.lastedMs('others')).toBe(0)
  stalls.lockFailed()
  expect(stalls.lastedMs('others')).toBe(0)
})
