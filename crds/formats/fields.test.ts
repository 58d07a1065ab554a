import { expect, test } from 'vitest'
import { apiToken, tunnelPassword } from '../../test/builders/resources.ts'
import { endOfApiToken } from '../api-token.ts'
import { endOfPassword } from '../tunnel-password.ts'

const metadata = { creationTimestamp: '2026-01-01T12:00:00Z' }

test.each([
  { does: 'is expiresAt within the maximum', expiresAt: '2026-01-01T12:00:01Z', end: '2026-01-01T12:00:01.000Z' },
  { does: 'may be before creation', expiresAt: '2020-01-01T00:00:00Z', end: '2020-01-01T00:00:00.000Z' },
  { does: 'is expiresAt four hours after creation', expiresAt: '2026-01-01T16:00:00Z', end: '2026-01-01T16:00:00.000Z' },
  {
    does: 'is expiresAt four hours after a creation late within its second',
    expiresAt: '2026-01-01T16:00:00.999Z',
    end: '2026-01-01T16:00:00.999Z',
  },
  { does: 'is the maximum for four hours and a second', expiresAt: '2026-01-01T16:00:01Z', end: '2026-01-01T16:00:00.000Z' },
  { does: 'is the maximum for years', expiresAt: '2030-01-31T12:00:00Z', end: '2026-01-01T16:00:00.000Z' },
])('the expiry of a password $does', ({ expiresAt, end }) => {
  expect(new Date(endOfPassword(tunnelPassword({ metadata, spec: { expiresAt } }))).toISOString()).toBe(end)
})

test.each([
  { does: 'is expiresAt within the maximum', expiresAt: '2026-03-01T00:00:00Z', end: '2026-03-01T00:00:00.000Z' },
  { does: 'is expiresAt one year after creation', expiresAt: '2027-01-01T12:00:00.500Z', end: '2027-01-01T12:00:00.500Z' },
  { does: 'is the maximum for more than a year', expiresAt: '2030-01-31T12:00:00Z', end: '2027-01-01T12:00:00.000Z' },
])('the expiry of an API token $does', ({ expiresAt, end }) => {
  expect(new Date(endOfApiToken(apiToken({ metadata, spec: { expiresAt } }))).toISOString()).toBe(end)
})
