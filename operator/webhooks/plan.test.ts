import { expect, test } from 'vitest'
import { planNext, type Response, whyDisable } from './plan.ts'

const AT = 1_000_000
const DAY = 86_400_000
const answered = (status: number): Response => ({ status, error: null })
const plan = (attempt: number, response: Response, { manual = false, random = 0.5 } = {}) =>
  planNext({ delivery: { attempt, manual }, response, at: AT, random: () => random })

test('the delays are 5 s, 30 s, 2 m, 10 m, 30 m, 1 h, 3 h, 6 h and 12 h; the tenth attempt is the last', () => {
  const delays = Array.from({ length: 10 }, (_, attempt) => plan(attempt, answered(500)).nextAt).map(
    (at) => at && (at - AT) / 1_000,
  )
  expect(delays).toEqual([5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200, null])
  expect(plan(9, answered(500))).toEqual({
    attempt: 10,
    status: 'failed',
    nextAt: null,
    error: 'status 500; expected 200 to 299',
  })
})

test('a delay varies by 10 %', () => {
  expect(plan(0, answered(500), { random: 0 }).nextAt).toBe(AT + 4_500)
  expect(plan(0, answered(500), { random: 1 }).nextAt).toBe(AT + 5_500)
})

test.each([
  { does: 'a later time in seconds is kept', retryAfter: '120', after: 120_000 },
  { does: 'a later date is kept', retryAfter: new Date(AT + 600_000).toUTCString(), after: 600_000 },
  { does: 'an earlier time changes nothing', retryAfter: '1', after: 5_000 },
  { does: 'a past date changes nothing', retryAfter: new Date(0).toUTCString(), after: 5_000 },
  { does: 'a negative time changes nothing', retryAfter: '-60', after: 5_000 },
  { does: 'a text changes nothing', retryAfter: 'soon', after: 5_000 },
  { does: 'ten days are a day', retryAfter: '864000', after: DAY },
])('Retry-After: $does', ({ retryAfter, after }) => {
  const { nextAt } = plan(0, { ...answered(503), retryAfter })
  expect((nextAt ?? 0) - AT).toBe(after)
})

test('Retry-After adds no eleventh attempt', () => {
  expect(plan(9, { ...answered(429), retryAfter: '60' })).toMatchObject({ status: 'failed', nextAt: null })
})

test.each([
  { does: '200 ends a delivery', response: answered(200), gives: { status: 'delivered', error: null } },
  { does: '299 ends a delivery', response: answered(299), gives: { status: 'delivered', error: null } },
  {
    does: 'a redirect is a failure',
    response: answered(301),
    gives: { status: 'pending', error: 'status 301: redirects are not followed' },
  },
  { does: '101 is a failure', response: answered(101), gives: { status: 'pending' } },
  { does: '410 is final', response: answered(410), gives: { status: 'failed', nextAt: null } },
  { does: 'an error is retried', response: { status: null, error: 'no' }, gives: { status: 'pending', error: 'no' } },
  { does: 'a success with an error is a failure', response: { status: 200, error: 'no' }, gives: { status: 'pending' } },
])('$does', ({ response, gives }) => expect(plan(0, response)).toMatchObject({ attempt: 1, ...gives }))

test('a delivery that a person asked for is attempted once', () => {
  expect(plan(0, answered(500), { manual: true })).toMatchObject({ attempt: 1, status: 'failed', nextAt: null })
})

test.each([
  { does: '410 disables at once', response: answered(410), streak: undefined, gives: 'receiver_gone' },
  { does: 'a success disables nothing', response: answered(200), streak: undefined, gives: undefined },
  {
    does: '20 failures over 3 days disable',
    response: answered(500),
    streak: { failures: 20, since: AT - 3 * DAY },
    gives: 'too_many_failures',
  },
  { does: '19 failures do not', response: answered(500), streak: { failures: 19, since: AT - 9 * DAY }, gives: undefined },
  {
    does: '100 failures within 2 days do not',
    response: answered(500),
    streak: { failures: 100, since: AT - 2 * DAY },
    gives: undefined,
  },
])('$does', ({ response, streak, gives }) => expect(whyDisable(response, streak, AT)).toBe(gives))
