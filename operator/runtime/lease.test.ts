import { expect, test } from 'vitest'
import type { Lease } from '../../crds/core.ts'
import { microTime, nextMove, observe, takenBy } from './lease.ts'

function lease(spec: Lease['spec'], resourceVersion = '1', uid = 'u'): Lease {
  const metadata = { name: 'l', namespace: 'n', uid, resourceVersion, generation: 1, creationTimestamp: '' }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
}

const others = { holderIdentity: 'other', leaseDurationSeconds: 12 }

test.each([
  { does: 'takes a lease without a holder', spec: {}, now: 0, move: { type: 'take' } },
  { does: 'takes a released lease', spec: { holderIdentity: '', leaseDurationSeconds: 12 }, now: 0, move: { type: 'take' } },
  { does: 'takes a lease that it holds already', spec: { ...others, holderIdentity: 'me' }, now: 0, move: { type: 'take' } },
  { does: 'waits while the lease of another has time left', spec: others, now: 11_000, move: { type: 'wait', ms: 1_000 } },
  { does: 'takes an expired lease of another', spec: others, now: 12_000, move: { type: 'take' } },
  {
    does: 'uses the duration in the holder’s record',
    spec: { ...others, leaseDurationSeconds: 60 },
    now: 12_000,
    move: { type: 'wait', ms: 48_000 },
  },
  { does: 'takes a lease without a duration', spec: { holderIdentity: 'other' }, now: 0, move: { type: 'take' } },
])('a candidate $does', ({ spec, now, move }) => {
  expect(nextMove({ lease: lease(spec), since: 0 }, 'me', now)).toEqual(move)
})

test('the duration counts from the last observed change, whatever times the record has', () => {
  const first = observe(lease({ ...others, renewTime: '1999-01-01T00:00:00.000000Z' }), undefined, 100)
  expect(observe(lease(others), first, 200).since).toBe(100)
  expect(observe(lease(others, '2'), first, 300).since).toBe(300)
  expect(observe(lease(others, '1', 'recreated'), first, 400).since).toBe(400)
})

test('a taken lease counts the transition, and has times in Kubernetes’ format', () => {
  const at = new Date('2030-01-31T12:00:00.123Z')
  expect(microTime(at)).toBe('2030-01-31T12:00:00.123000Z')
  expect(takenBy('me', 12, { at })).toMatchObject({ holderIdentity: 'me', leaseDurationSeconds: 12, leaseTransitions: 0 })
  expect(takenBy('me', 12, { at, before: { leaseTransitions: 3 } }).leaseTransitions).toBe(4)
})
