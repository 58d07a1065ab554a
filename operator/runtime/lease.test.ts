import { expect, test } from 'vitest'
import type { Lease } from '../../crds/core.ts'
import { microTime, nextMove, observe, takenBy, createFencedClient } from './lease.ts'
import { Organization } from '../../crds/organization.ts'
import type { ApiRequest, KubernetesClient } from '../../store/kubernetes/client.ts'
import { createStoreOver } from '../../store/kubernetes.ts'

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

/** Kubernetes client that records its requests and answers 404. */
function stage(writableMs: number) {
  const requests: ApiRequest[] = []
  const client = {
    request: (request: ApiRequest) => {
      requests.push(request)
      return Promise.resolve({ status: 404, body: { kind: 'Status', reason: 'NotFound', message: 'not found', code: 404 } })
    },
  } as KubernetesClient
  const fenced = createFencedClient(client, () => writableMs)
  return { requests, fenced, store: createStoreOver(fenced, {}) }
}

const patch = { method: 'PATCH', path: '/x' } as const

test('the timeout of a write is at most the time left to the lease', async () => {
  const { requests, fenced } = stage(3_000)
  await fenced.request(patch)
  await fenced.request({ ...patch, timeoutMs: 100 })
  await fenced.request({ method: 'GET', path: '/x' })
  expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([3_000, 100, undefined])
})

test('a store over the fenced client rejects writes without leadership, and always reads', async () => {
  const { requests, store } = stage(0)
  expect(await store.get(Organization, { name: 'acme' })).toBeUndefined()
  expect(requests).toHaveLength(1)
  const draft = { metadata: { name: 'acme' }, spec: { name: 'Acme' } }
  await expect(store.create(Organization, draft)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(store.delete(Organization, { name: 'acme' })).rejects.toMatchObject({ code: 'unavailable' })
  expect(requests.every(({ method }) => method === 'GET')).toBe(true)
})
