import { expect, test } from 'vitest'
import { createBarriers } from './listen.ts'

const never = () => new AbortController().signal

test('a barrier is passed only when its own notification has arrived', async () => {
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
  { does: 'its connection no longer answers', notify: () => new Promise<void>(() => undefined) },
])('when $does, aborting resolves the barrier and leaves no state', async ({ notify }) => {
  const barriers = createBarriers(notify)
  const giveUp = new AbortController()
  const passing = barriers.pass(giveUp.signal)
  expect(barriers.waiting).toBe(1)
  giveUp.abort()
  await passing
  expect(barriers.waiting).toBe(0)
})

test('an error of notify is thrown, and leaves no state', async () => {
  const barriers = createBarriers(() => Promise.reject(new Error('away')))
  await expect(barriers.pass(never())).rejects.toThrow('away')
  expect(barriers.waiting).toBe(0)
})
