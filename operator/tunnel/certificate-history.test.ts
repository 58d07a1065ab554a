import { expect, test } from 'vitest'
import type { TunnelCertificate } from '../../crds/tunnel.ts'
import { withHistory } from './certificate-history.ts'

const at = (hour: number): string => new Date(Date.UTC(2030, 0, 1, hour)).toISOString()
const now = (hour: number): number => Date.parse(at(hour))
const valid: TunnelCertificate = { status: 'valid', issuer: 'R11', obtainedAt: at(0), expiresAt: at(9) }
const failedAt = (hour: number, lastError = 'port 80 is closed'): TunnelCertificate => ({
  status: 'failed',
  lastError,
  nextAttemptAt: at(hour + 1),
})
const historyOf = (steps: readonly (readonly [TunnelCertificate, number])[]) =>
  steps.reduce<TunnelCertificate | undefined>((before, [after, hour]) => withHistory(before, after, now(hour)), undefined)
    ?.history

test('a status that does not change adds nothing', () => {
  const once = withHistory(undefined, valid, now(0))
  expect(once.history).toEqual([{ at: at(0), event: 'obtained', issuer: 'R11', expiresAt: at(9) }])
  expect(withHistory(once, valid, now(1))).toEqual(once)
})

test('a certificate that is obtained, cannot be renewed, expires and is obtained again has these events, newest first', () => {
  const again = { ...valid, obtainedAt: at(10), expiresAt: at(19) }
  const failing = { ...valid, lastError: 'port 80 is closed', nextAttemptAt: at(7) }
  const history = historyOf([
    [valid, 0],
    [failing, 6],
    [{ ...failing, status: 'expired' }, 9],
    [again, 10],
  ])
  expect(history?.map(({ event, at: when }) => [event, when])).toEqual([
    ['obtained', at(10)],
    ['expired', at(9)],
    ['failed', at(6)],
    ['obtained', at(0)],
  ])
})

test('attempts in a row that fail for one reason are one event', () => {
  const history = historyOf([1, 2, 3].map((hour) => [failedAt(hour), hour] as const))
  expect(history).toEqual([{ at: at(3), event: 'failed', error: 'port 80 is closed', attempts: 3 }])
})

test('another reason is another event, and only the last ten stay', () => {
  const hours = Array.from({ length: 12 }, (_, hour) => hour)
  const history = historyOf(hours.map((hour) => [failedAt(hour, `reason ${hour}`), hour] as const))
  expect(history?.map(({ error }) => error)).toEqual(
    hours
      .slice(2)
      .reverse()
      .map((hour) => `reason ${hour}`),
  )
})

test('an order that is under way adds nothing', () => {
  const history = historyOf([
    [{ status: 'obtaining' }, 0],
    [{ status: 'pending', lastError: 'the budget is used up' }, 1],
  ])
  expect(history).toBeUndefined()
})
