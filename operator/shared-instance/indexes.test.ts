import { expect, test } from 'vitest'
import { claimedStatus, readyCondition, sharedInstance } from '../../test/builders/resources.ts'
import { isSettled } from './indexes.ts'

test.each([
  { which: 'is claimed', traits: { status: claimedStatus }, settled: true },
  { which: 'was just asked for', traits: {}, settled: false },
  { which: 'has a newer spec', traits: { status: claimedStatus, metadata: { generation: 2 } }, settled: false },
  {
    which: 'is going',
    traits: { status: claimedStatus, metadata: { deletionTimestamp: '2026-01-02T03:04:05Z' } },
    settled: false,
  },
  {
    which: 'waits for its server',
    traits: { status: { ...claimedStatus, conditions: [readyCondition('False', 'ServerUnavailable')] } },
    settled: false,
  },
])('an instance that $which is settled: $settled', ({ traits, settled }) => {
  expect(isSettled(sharedInstance(traits))).toBe(settled)
})
