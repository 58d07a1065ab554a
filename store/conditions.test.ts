import { expect, test } from 'vitest'
import { isReady, notReady, ready, withCondition, withoutCondition } from './conditions.ts'

const stamp = (iso: string) => ({ type: 'Ready', generation: 2, now: new Date(iso) })
const first = withCondition(undefined, notReady('Starting', 'not yet'), stamp('2026-01-01T00:00:00.900Z'))

test('a new condition carries the time in whole seconds', () => {
  expect(first).toEqual([
    {
      type: 'Ready',
      status: 'False',
      reason: 'Starting',
      message: 'not yet',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration: 2,
    },
  ])
})

test('a new reason with the same status keeps the transition time', () => {
  const [next] = withCondition(first, notReady('Crashed', 'it ended'), stamp('2026-01-02T00:00:00Z'))
  expect(next).toMatchObject({ reason: 'Crashed', lastTransitionTime: '2026-01-01T00:00:00Z' })
})

test('a new status moves the transition time, and other conditions stay', () => {
  const other = withCondition(first, notReady('Full', 'no room'), { ...stamp('2026-01-01T00:00:00Z'), type: 'Placed' })
  const next = withCondition(other, ready('Running', 'it runs'), stamp('2026-01-02T00:00:00Z'))
  expect(next.map((condition) => [condition.type, condition.status, condition.lastTransitionTime])).toEqual([
    ['Placed', 'False', '2026-01-01T00:00:00Z'],
    ['Ready', 'True', '2026-01-02T00:00:00Z'],
  ])
  expect(isReady({ status: { conditions: next } })).toBe(true)
  expect(withoutCondition(next, 'Ready')).toHaveLength(1)
})

test('a long message is truncated to the limit of the schema', () => {
  const [long] = withCondition(undefined, notReady('Crashed', 'x'.repeat(5_000)), stamp('2026-01-01T00:00:00Z'))
  expect(long?.message).toHaveLength(1024)
})
