import { expect, test } from 'vitest'
import { roleBindingOf, roleOf } from './access.ts'
import { endpoint } from '../../../test/support/operator/kubernetes-objects.ts'
import { networkPolicyOf } from './services.ts'

test('an endpoint without tunnels lets its edges read the certificate for unknownHosts, not every Secret', () => {
  const secrets = roleOf(endpoint(), []).rules?.filter(({ resources }) => resources?.includes('secrets'))
  expect(secrets?.map(({ resourceNames }) => resourceNames)).toEqual([['endpoint-eu-strangers']])
})

test('edges may read only the named certificates, and list none', () => {
  const [, secrets] = roleOf(endpoint(), ['tunnel-a-certificate', 'tunnel-b-certificate']).rules ?? []
  expect(secrets).toEqual({
    ...{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
    resourceNames: ['endpoint-eu-strangers', 'tunnel-a-certificate', 'tunnel-b-certificate'],
  })
})

test('all objects of an endpoint have it as their owner', () => {
  const { ownerReferences } = roleBindingOf(endpoint()).metadata ?? {}
  expect(ownerReferences).toEqual([{ apiVersion: 'mooring.dev/v1alpha1', kind: 'TunnelEndpoint', name: 'eu', uid: 'uid-of-eu' }])
})

test('the ports for clients and visitors are open to any source, the mesh port only to edges of the endpoint', () => {
  const [open, mesh] = networkPolicyOf(endpoint()).spec.ingress
  expect(open).toEqual({ ports: [22_222, 28_080, 28_443, 9_464].map((port) => ({ protocol: 'TCP', port })) })
  expect(mesh).toMatchObject({
    from: [{ podSelector: { matchLabels: { 'mooring.dev/endpoint': 'eu' } } }],
    ports: [{ port: 28_444 }],
  })
})
