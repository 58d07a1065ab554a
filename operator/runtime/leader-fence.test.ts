import { expect, test } from 'vitest'
import { Organization } from '../../crds/organization.ts'
import type { ApiRequest, KubernetesClient } from '../../store/kubernetes/client.ts'
import { createStoreOver } from '../../store/kubernetes.ts'
import { createFencedClient } from './leader.ts'

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
