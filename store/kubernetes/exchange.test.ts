import { expect, test } from 'vitest'
import { type Attempt, retryMs } from './exchange.ts'

const answered = (status: number, retryAfterMs?: number): Attempt => ({
  type: 'answered',
  status,
  retryAfterMs,
  body: Buffer.alloc(0),
})
const broken = (arrived: boolean): Attempt => ({ type: 'failed', arrived, error: new Error('broken') })

test.each([
  { what: 'a successful response', attempt: answered(200), read: undefined, write: undefined },
  { what: 'a conflict', attempt: answered(409), read: undefined, write: undefined },
  { what: 'too many requests', attempt: answered(429), read: 100, write: 100 },
  { what: 'too many requests, with Retry-After', attempt: answered(429, 3_000), read: 3_000, write: 3_000 },
  { what: 'a server error', attempt: answered(503), read: 100, write: undefined },
  { what: 'a server error, with Retry-After', attempt: answered(500, 1_000), read: 1_000, write: undefined },
  { what: 'rejected credentials', attempt: answered(401), read: 0, write: 0 },
  { what: 'a request that was not sent', attempt: broken(false), read: 100, write: 100 },
  { what: 'a lost response', attempt: broken(true), read: 100, write: undefined },
])('after $what, a read is retried after $read ms, a write after $write', ({ attempt, read, write }) => {
  const facts = { tries: 1, random: () => 1 }
  expect([true, false].map((idempotent) => retryMs(attempt, { ...facts, idempotent }))).toEqual([read, write])
})

test('rejected credentials are retried once, other failures several times', () => {
  const facts = { idempotent: true, random: () => 1 }
  expect(retryMs(answered(401), { ...facts, tries: 2 })).toBeUndefined()
  expect(retryMs(answered(503), { ...facts, tries: 4 })).toBe(800)
  expect(retryMs(answered(503), { ...facts, tries: 5 })).toBeUndefined()
})
