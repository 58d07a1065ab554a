import { expect, test } from 'vitest'
import { nextServer, serverName } from './plan.ts'

const motor = 'postgresql-15.4.0'

test.each([
  { does: 'makes the first server of a warm motor', warm: true, free: 0, waiting: 0, ordinals: [], ordinal: 1 },
  {
    does: 'makes no server of a cold motor that nobody asks for',
    warm: false,
    free: 0,
    waiting: 0,
    ordinals: [],
    ordinal: undefined,
  },
  { does: 'makes a server of a cold motor for the first that waits', warm: false, free: 0, waiting: 1, ordinals: [], ordinal: 1 },
  { does: 'makes another when half of the last one is taken', warm: true, free: 24, waiting: 0, ordinals: [1], ordinal: 2 },
  { does: 'makes no other before', warm: true, free: 25, waiting: 0, ordinals: [1], ordinal: undefined },
  { does: 'waits for the server that is starting', warm: true, free: 50, waiting: 3, ordinals: [1], ordinal: undefined },
  { does: 'makes another when more wait than have a place', warm: false, free: 2, waiting: 3, ordinals: [1], ordinal: 2 },
  { does: 'fills a gap in the ordinals', warm: true, free: 0, waiting: 0, ordinals: [1, 3], ordinal: 2 },
])('$does', ({ warm, free, waiting, ordinals, ordinal }) => {
  expect(nextServer({ motor, warm, headroom: 25, free, waiting, ordinals })).toBe(ordinal)
})

test('a server is named after motor, region and ordinal', () => {
  expect(serverName(motor, 7, 2)).toBe('postgresql-15-4-0-r7-2')
})
