import { expect, test } from 'vitest'
import { presenceOf } from './presence.ts'

test.each([
  { open: [], says: { connected: false, sessions: 0 } },
  { open: [{ at: 0 }], says: { connected: true, sessions: 1, lastConnectedAt: '1970-01-01T00:00:00.000Z' } },
  { open: [{ at: 5 }, { at: 2_000 }], says: { connected: true, sessions: 2, lastConnectedAt: '1970-01-01T00:00:02.000Z' } },
])('$open.length open sessions are told as such, with the time of the newest', ({ open, says }) => {
  expect(presenceOf(open)).toEqual(says)
})
