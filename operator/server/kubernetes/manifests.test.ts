import { expect, test } from 'vitest'
import { desired } from '../../../test/support/operator/kubernetes-objects.ts'
import { podsServiceOf, serviceOf } from './manifests.ts'

test.each([
  { exposure: 'ClusterIP', policy: undefined },
  { exposure: 'NodePort', policy: 'Local' },
  { exposure: 'LoadBalancer', policy: 'Local' },
] as const)('exposed as $exposure, traffic from outside is $policy', ({ exposure, policy }) => {
  const { spec } = serviceOf(desired({ exposure }))
  expect(spec?.type).toBe(exposure)
  expect(spec?.externalTrafficPolicy).toBe(policy)
  expect(spec?.ports).toEqual([{ name: 'postgresql', port: 5432, targetPort: 5432, protocol: 'TCP' }])
})

test('the Service of the pods has another name and no address', () => {
  const { metadata, spec } = podsServiceOf(desired())
  expect(metadata?.name).toBe('pg-1-pods')
  expect(spec?.clusterIP).toBe('None')
})
