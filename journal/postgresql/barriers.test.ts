import { expect, test } from 'vitest'
import { createBarriers } from './barriers.ts'

const never = () => new AbortController().signal

test('it is passed once its own notification has come', async () => {
  const tokens: string[] = []
  const barriers = createBarriers(async (token) => void tokens.push(token))
  const passing = [barriers.pass(never()), barriers.pass(never())]
  let passed = 0
  for (const one of passing) void one.then(() => (passed += 1))
  barriers.reached('another')
  barriers.reached(tokens[1] ?? '')
  await passing[1]
  expect([passed, barriers.waiting]).toEqual([1, 1])
  barriers.reached(tokens[0] ?? '')
  await Promise.all(passing)
  expect(barriers.waiting).toBe(0)
})

test.each([
  { does: 'its notification is lost', notify: () => Promise.resolve() },
  { does: 'its connection answers no more', notify: () => new Promise<void>(() => undefined) },
])('when $does it is given up, and nothing of it is left', async ({ notify }) => {
  const barriers = createBarriers(notify)
  const giveUp = new AbortController()
  const passing = barriers.pass(giveUp.signal)
  expect(barriers.waiting).toBe(1)
  giveUp.abort()
  await passing
  expect(barriers.waiting).toBe(0)
})

test('what prevents it is thrown, and nothing of it is left', async () => {
  const barriers = createBarriers(() => Promise.reject(new Error('away')))
  await expect(barriers.pass(never())).rejects.toThrow('away')
  expect(barriers.waiting).toBe(0)
})
