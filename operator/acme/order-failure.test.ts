import { expect, test } from 'vitest'
import { AcmeError } from './acme-error.ts'
import { CheckError, failedState } from './order-failure.ts'
import type { OrderState } from './order-state.ts'
import { OrderLostError } from './order-steps.ts'
import { retryAfterMs } from '../../shared/retry-after.ts'
import { placedWithin } from './orders.ts'
import { timeWithin } from './renewal-info.ts'

const NOW = 1_800_000_000_000
const HOUR = 3_600_000
const state: OrderState = {
  ...{ phase: 'validate', directory: 'https://ca.example/dir', identifier: 'a.example.org', token: 'token', since: NOW },
  ...{
    url: 'https://ca.example/order/1',
    challenge: { url: 'https://ca.example/c/1', answered: true },
    failures: 0,
    checks: 0,
    placed: [],
    waits: false,
    counted: true,
  },
}
const lost = new OrderLostError('acme_rejected', 'no')

interface Failure {
  readonly does: string
  readonly error: Error
  readonly isInterrupted?: boolean
  readonly keeps: boolean
  readonly waitMs: number
}

test.each<Failure>([
  { does: 'a failed check', error: new CheckError('no'), keeps: true, waitMs: 10_000 },
  { does: 'a CA that does not answer', error: new AcmeError('acme_unreachable', 'no'), keeps: true, waitMs: 2_000 },
  { does: 'a server error', error: new AcmeError('acme_rejected', 'no', { status: 503 }), keeps: true, waitMs: 2_000 },
  {
    does: 'a limit',
    error: new AcmeError('acme_rejected', 'no', { status: 429, retryAfterMs: 90_000 }),
    keeps: true,
    waitMs: 90_000,
  },
  { does: 'a refused name', error: new AcmeError('acme_rejected', 'no', { status: 403 }), keeps: false, waitMs: 60_000 },
  { does: 'an invalid order', error: lost, keeps: false, waitMs: 60_000 },
  {
    does: 'an order that became invalid while the edge was away',
    error: lost,
    isInterrupted: true,
    keeps: false,
    waitMs: 10_000,
  },
  {
    does: 'an unknown account',
    error: new AcmeError('acme_rejected', 'no', { type: 'accountDoesNotExist' }),
    keeps: false,
    waitMs: 2_000,
  },
])('$does keeps the order ($keeps) and waits', ({ error, keeps, waitMs, isInterrupted = false }) => {
  const next = failedState(state, error, { now: NOW, random: () => 1, isInterrupted })
  expect(next).toMatchObject({ failures: 1, lastError: 'no', next: { at: NOW + waitMs, waitMs }, counted: true })
  expect([next.phase, next.url === state.url, next.token === state.token]).toEqual([keeps ? 'validate' : 'check', keeps, keeps])
})

test.each([
  ['120', 120_000],
  [new Date(NOW + 5_000).toUTCString(), 5_000],
  ['soon', undefined],
  [undefined, undefined],
  ['9999999999', 691_200_000],
])('Retry-After %s is %s ms', (field, ms) => {
  expect(retryAfterMs(field, NOW)).toBe(ms)
})

test('a renewal is spread over the window of the CA', () => {
  const window = { start: '2026-01-01T00:00:00Z', end: '2026-01-02T00:00:00Z' }
  const times = Array.from({ length: 50 }, (_, index) => timeWithin(window, `id-${index}`) ?? 0)
  expect(Math.min(...times)).toBeGreaterThanOrEqual(Date.parse(window.start))
  expect(Math.max(...times)).toBeLessThanOrEqual(Date.parse(window.end))
  expect(new Set(times).size).toBe(50)
  expect(timeWithin({ start: window.end, end: window.start }, 'id')).toBeUndefined()
})

test('the error of an order names what the own check found before it; then checks begin anew', () => {
  const about = { now: NOW, random: () => 1, isInterrupted: false }
  const checked = failedState({ ...state, phase: 'check' }, new CheckError('port 80 is closed'), about)
  expect(checked).toMatchObject({ checks: 1, checkError: 'port 80 is closed' })
  const next = failedState(checked, lost, about)
  expect(next).toMatchObject({ checks: 0, lastError: 'no; before, the operator found: port 80 is closed' })
  expect(next.checkError).toBeUndefined()
})

test('a restart shortens only the wait of the first failure', () => {
  const next = failedState({ ...state, failures: 2 }, lost, { now: NOW, random: () => 1, isInterrupted: true })
  expect(next.next?.waitMs).toBe(240_000)
})

test.each([
  { does: 'four orders within an hour are the most', placed: [0, 1, 2, 3], isLimit: true },
  { does: 'an order of an hour ago does not count', placed: [-1, 1, 2, 3], isLimit: false },
  { does: 'an order in the future does not count', placed: [1, 2, 3, HOUR + 1], isLimit: false },
])('$does', ({ placed, isLimit }) => {
  expect(placedWithin({ placed }, HOUR - 1).isLimit).toBe(isLimit)
})
