import { expect, test, vi } from 'vitest'
import { PersistentVolumeClaim } from '../../kubernetes/kinds.ts'
import { StoreError, type Store } from '../../../store/port.ts'
import { createVolumes, gibOf, isOutdated, volumeStep } from './volume.ts'

const METADATA = { uid: 'u', resourceVersion: '1', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z' }

const claim = (requested: string, capacity?: string): PersistentVolumeClaim => ({
  ...{
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...METADATA, namespace: 'mooring-shared', name: 'data-a-0' },
  },
  spec: { storageClassName: 'fast', resources: { requests: { storage: requested } } },
  ...(capacity !== undefined && { status: { capacity: { storage: capacity } } }),
})

test.each([
  { quantity: '10Gi', gib: 10 },
  { quantity: '1Ti', gib: 1_024 },
  { quantity: '512Mi', gib: 0.5 },
  { quantity: '1073741824', gib: 1 },
  { quantity: '1.5Gi', gib: 1.5 },
  { quantity: 'all', gib: 0 },
  { quantity: undefined, gib: 0 },
])('$quantity is $gib GiB', ({ quantity, gib }) => {
  expect(gibOf(quantity)).toBe(gib)
})

test.each([
  { name: 'has the size', has: claim('20Gi', '20Gi'), step: 'none' },
  { name: 'is larger', has: claim('50Gi', '50Gi'), step: 'none' },
  { name: 'is not bound yet', has: claim('20Gi'), step: 'none' },
  { name: 'is smaller', has: claim('10Gi', '10Gi'), step: 'request' },
  { name: 'is growing', has: claim('20Gi', '10Gi'), step: 'wait' },
])('a volume of 20 GiB that $name needs: $step', ({ has, step }) => {
  expect(volumeStep(has, 20)).toBe(step)
})

test('a growth that the storage class refuses is reported, and requested again after a minute', async () => {
  const mergePatch = vi.fn(() => Promise.reject(new StoreError('forbidden', 'only dynamically provisioned pvc can be resized')))
  const clock = { ms: 0 }
  const grow = createVolumes({ store: { mergePatch } as unknown as Store, now: () => new Date(clock.ms) })
  const small = claim('10Gi', '10Gi')
  expect(await grow(small, 20)).toMatchObject({
    reason: 'StorageNotExpandable',
    message: /storage class fast .* from 10 to 20 GiB/,
  })
  await grow(small, 20)
  expect(mergePatch).toHaveBeenCalledTimes(1)
  clock.ms += 60_000
  await grow(small, 20)
  expect(mergePatch).toHaveBeenCalledTimes(2)
  expect(await grow(undefined, 20)).toBeUndefined()
})

test('a growth is requested by a patch of the claim', async () => {
  const mergePatch = vi.fn(() => Promise.resolve(claim('20Gi', '10Gi')))
  const grow = createVolumes({ store: { mergePatch } as unknown as Store, now: () => new Date(0) })
  expect(await grow(claim('10Gi', '10Gi'), 20)).toEqual({ reason: 'Updating', message: 'the volume is growing to 20 GiB' })
  const patch = { spec: { resources: { requests: { storage: '20Gi' } } } }
  expect(mergePatch).toHaveBeenCalledWith(PersistentVolumeClaim, expect.anything(), patch, { uid: 'u' })
})

const pod = (revision: string) => ({ metadata: { ...METADATA, name: 'a-0', labels: { 'controller-revision-hash': revision } } })
const set = (status: { observedGeneration: number; updateRevision: string } | undefined) => ({
  metadata: { ...METADATA, name: 'a' },
  ...(status && { status }),
})

test.each([
  { name: 'of the present revision is current', of: 'r2', status: { observedGeneration: 2, updateRevision: 'r2' }, is: false },
  { name: 'of a former revision is outdated', of: 'r1', status: { observedGeneration: 2, updateRevision: 'r2' }, is: true },
  { name: 'is outdated until its change is seen', of: 'r1', status: { observedGeneration: 1, updateRevision: 'r1' }, is: true },
  { name: 'without a status of its set is current', of: 'r1', status: undefined, is: false },
])('a pod $name', ({ of, status, is }) => {
  expect(isOutdated(pod(of), set(status))).toBe(is)
})
