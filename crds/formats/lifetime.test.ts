import { expect, test } from 'vitest'
import { apiToken } from '../../test/builders/api-token.ts'
import { tunnelPassword } from '../../test/builders/tunnel-password.ts'
import { endOfApiToken } from '../api-token.ts'
import { endOfPassword } from '../tunnel-password.ts'

const metadata = { creationTimestamp: '2026-01-01T12:00:00Z' }

test.each([
  { does: 'what ends sooner ends when it says', expiresAt: '2026-01-01T12:00:01Z', end: '2026-01-01T12:00:01.000Z' },
  { does: 'what was over before it was made is over', expiresAt: '2020-01-01T00:00:00Z', end: '2020-01-01T00:00:00.000Z' },
  { does: 'four hours are as many', expiresAt: '2026-01-01T16:00:00Z', end: '2026-01-01T16:00:00.000Z' },
  {
    does: 'four hours are as many, late within the second of its creation, too',
    expiresAt: '2026-01-01T16:00:00.999Z',
    end: '2026-01-01T16:00:00.999Z',
  },
  { does: 'a second more is not had', expiresAt: '2026-01-01T16:00:01Z', end: '2026-01-01T16:00:00.000Z' },
  { does: 'nor are years', expiresAt: '2030-01-31T12:00:00Z', end: '2026-01-01T16:00:00.000Z' },
])('of a password, $does', ({ expiresAt, end }) => {
  expect(new Date(endOfPassword(tunnelPassword({ metadata, spec: { expiresAt } }))).toISOString()).toBe(end)
})

test.each([
  { does: 'what ends sooner ends when it says', expiresAt: '2026-03-01T00:00:00Z', end: '2026-03-01T00:00:00.000Z' },
  { does: 'a year is had', expiresAt: '2027-01-01T12:00:00.500Z', end: '2027-01-01T12:00:00.500Z' },
  { does: 'more is not', expiresAt: '2030-01-31T12:00:00Z', end: '2027-01-01T12:00:00.000Z' },
])('of an API token, $does', ({ expiresAt, end }) => {
  expect(new Date(endOfApiToken(apiToken({ metadata, spec: { expiresAt } }))).toISOString()).toBe(end)
})
