import { expect, test } from 'vitest'
import type { Namespace } from '../../crds/core.ts'
import { labelProblem } from './tenancy.ts'

const [ORGANIZATION, NAMESPACE] = ['mooring.dev/organization', 'mooring.dev/namespace']

const namespace = (name: string, labels: Readonly<Record<string, string>>): Namespace => ({
  ...{ apiVersion: 'v1', kind: 'Namespace' },
  metadata: { name, labels, uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
})

test.each([
  { name: 'acme--prod', labels: { [ORGANIZATION]: 'acme', [NAMESPACE]: 'prod' }, says: undefined },
  {
    name: 'acme--prod',
    labels: {},
    says: `its Namespace acme--prod has no label ${ORGANIZATION}=acme and has no label ${NAMESPACE}=prod`,
  },
  { name: 'acme--prod', labels: { [NAMESPACE]: 'prod' }, says: `its Namespace acme--prod has no label ${ORGANIZATION}=acme` },
  {
    name: 'acme--prod',
    labels: { [ORGANIZATION]: 'acme', [NAMESPACE]: 'test' },
    says: `its Namespace acme--prod has the label ${NAMESPACE}=test, not prod`,
  },
  {
    name: 'default',
    labels: { [ORGANIZATION]: 'acme', [NAMESPACE]: 'prod' },
    says: `its Namespace is called default, and a tenant's is called {organization}--{namespace}, with both as labels ${ORGANIZATION} and ${NAMESPACE}`,
  },
])('a Namespace $name with the labels $labels: $says', ({ name, labels, says }) => {
  expect(labelProblem(name, namespace(name, labels))).toBe(says)
})

test('a Namespace that does not exist', () => {
  expect(labelProblem('acme--prod', undefined)).toBe('its Namespace acme--prod does not exist')
})
