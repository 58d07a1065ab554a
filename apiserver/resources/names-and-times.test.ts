import { expect, test } from 'vitest'
import { annotations } from '../../crds/names.ts'
import { createdAtOf, createdNow } from './names-and-times.ts'

const creationTimestamp = '2026-01-02T03:04:05Z'
const with0 = '2026-01-02T03:04:05.000Z'

test.each([
  { does: 'names that second', stamp: '2026-01-02T03:04:05.678Z', shows: '2026-01-02T03:04:05.678Z' },
  { does: 'names the second before', stamp: '2026-01-02T03:04:04.999Z', shows: with0 },
  { does: 'names another day', stamp: '2030-01-02T03:04:05.678Z', shows: with0 },
  { does: 'is in another form', stamp: '2026-01-02T03:04:05.6789Z', shows: with0 },
  { does: 'begins with that second and is no time', stamp: '2026-01-02T03:04:05.<b>', shows: with0 },
  { does: 'is absent', stamp: undefined, shows: with0 },
])('an object whose annotation $does was created at $shows', ({ stamp, shows }) => {
  const own = stamp === undefined ? undefined : { [annotations.createdAt]: stamp }
  expect(createdAtOf({ creationTimestamp, ...(own && { annotations: own }) })).toBe(shows)
})

test('what is written at creation is what is shown', () => {
  const now = new Date('2026-01-02T03:04:05.678Z')
  expect(createdAtOf({ creationTimestamp, annotations: createdNow(now) })).toBe(now.toISOString())
})
