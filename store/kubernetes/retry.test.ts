import { expect, test } from 'vitest'
import type { Attempt } from './exchange.ts'
import { retryMs } from './retry.ts'

const answered = (status: number, retryAfterMs?: number): Attempt => ({
  type: 'answered',
  status,
  retryAfterMs,
  body: Buffer.alloc(0),
})
const broken = (arrived: boolean): Attempt => ({ type: 'failed', arrived, error: new Error('broken') })

test.each([
  { what: 'an answer', attempt: answered(200), read: undefined, write: undefined },
  { what: 'a refusal', attempt: answered(409), read: undefined, write: undefined },
  { what: 'too many requests', attempt: answered(429), read: 100, write: 100 },
  { what: 'too many requests, with a time', attempt: answered(429, 3_000), read: 3_000, write: 3_000 },
  { what: 'trouble of the server', attempt: answered(503), read: 100, write: undefined },
  { what: 'trouble of the server, with a time', attempt: answered(500, 1_000), read: 1_000, write: undefined },
  { what: 'credentials that are not accepted', attempt: answered(401), read: 0, write: 0 },
  { what: 'a request that was never sent', attempt: broken(false), read: 100, write: 100 },
  { what: 'an answer that never came', attempt: broken(true), read: 100, write: undefined },
])('$what: a read is tried again after $read ms, a write after $write', ({ attempt, read, write }) => {
  const facts = { tries: 1, random: () => 1 }
  expect([true, false].map((idempotent) => retryMs(attempt, { ...facts, idempotent }))).toEqual([read, write])
})

test('new credentials are tried once, everything else a few times', () => {
  const facts = { idempotent: true, random: () => 1 }
  expect(retryMs(answered(401), { ...facts, tries: 2 })).toBeUndefined()
  expect(retryMs(answered(503), { ...facts, tries: 4 })).toBe(800)
  expect(retryMs(answered(503), { ...facts, tries: 5 })).toBeUndefined()
})
