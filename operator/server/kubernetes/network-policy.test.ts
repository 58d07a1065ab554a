import { expect, test } from 'vitest'
import { server, desired } from '../../../test/support/operator/server-objects.ts'
import { networkPolicyOf } from './network-policy.ts'

const nobody = { namespaces: [], podNetworks: [] }
const fromOf = (callers: Parameters<typeof networkPolicyOf>[1]) => networkPolicyOf(desired(), callers).spec.ingress[0]?.from
const OPERATOR = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'mooring-system' } },
  podSelector: { matchLabels: { 'app.kubernetes.io/name': 'mooring', 'app.kubernetes.io/component': 'operator' } },
}

test('the server may open no connections, and only its port is open', () => {
  const { spec } = networkPolicyOf(desired(), nobody)
  expect(spec.policyTypes).toEqual(['Ingress', 'Egress'])
  expect(spec.egress).toEqual([])
  expect(spec.ingress).toHaveLength(1)
  expect(spec.ingress[0]?.ports).toEqual([{ protocol: 'TCP', port: 5432 }])
})

test.each([
  { does: 'only the operator, while it has no tenant and the pod networks are unknown', callers: nobody, others: [] },
  {
    does: 'namespaces of its tenants, each once',
    callers: { ...nobody, namespaces: ['b--x', 'a--x', 'b--x'] },
    others: [
      {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['a--x', 'b--x'] }],
        },
      },
    ],
  },
  {
    does: 'addresses outside the pod networks, of the pods’ address family',
    callers: { ...nobody, podNetworks: ['10.244.0.0/16', '10.245.0.0/24'] },
    others: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.244.0.0/16', '10.245.0.0/24'] } }],
  },
  {
    does: 'both families where pods have both',
    callers: { ...nobody, podNetworks: ['10.244.0.0/16', 'fd00:10::/56'] },
    others: [
      { ipBlock: { cidr: '0.0.0.0/0', except: ['10.244.0.0/16'] } },
      { ipBlock: { cidr: '::/0', except: ['fd00:10::/56'] } },
    ],
  },
])('it admits $does', ({ callers, others }) => {
  expect(fromOf(callers)).toEqual([OPERATOR, ...others])
})

test('a server of Mooring’s own admits only its components', () => {
  const own = desired({ server: { ...server, spec: { ...server.spec, tenancy: 'internal' } } })
  const { spec } = networkPolicyOf(own, { namespaces: ['a--x'], podNetworks: ['10.244.0.0/16'] })
  expect(spec.ingress[0]?.from).toEqual([
    {
      namespaceSelector: OPERATOR.namespaceSelector,
      podSelector: {
        matchExpressions: [{ key: 'app.kubernetes.io/name', operator: 'In', values: ['mooring', 'mooring-edge'] }],
      },
    },
  ])
})
