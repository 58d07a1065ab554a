import { BlockList, isIPv6 } from 'node:net'
import { expect, test } from 'vitest'
import fc from 'fast-check'
import { server, desired, node } from '../../../test/support/operator/kubernetes-objects.ts'
import { networkPolicyOf, podNetworks } from './network-policy.ts'

const nobody = { namespaces: [], podNetworks: [] }
const fromOf = (callers: Parameters<typeof networkPolicyOf>[1]) => networkPolicyOf(desired(), callers).spec.ingress[0]?.from
const OPERATOR = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'mooring-system' } },
  podSelector: { matchLabels: { 'app.kubernetes.io/name': 'mooring', 'app.kubernetes.io/component': 'operator' } },
}

test('the port for the administrator is open to the operator alone', () => {
  const { ingress } = networkPolicyOf(desired({ adminPort: 33_062 }), {
    namespaces: ['team-a'],
    podNetworks: ['10.0.0.0/8'],
  }).spec
  expect(ingress.filter(({ ports }) => ports.some(({ port }) => port === 33_062))).toEqual([
    { from: [OPERATOR], ports: [{ protocol: 'TCP', port: 33_062 }] },
  ])
})

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

const none = { configured: [], nodes: [], podAddresses: [] }

test.each([
  { does: 'empty while no fact is known', facts: none, networks: [] },
  {
    does: 'the configured ranges, whatever else is known',
    facts: { configured: ['10.1.0.0/16'], nodes: [node('a', { podCIDRs: ['10.2.0.0/24'] })], podAddresses: ['10.3.0.1'] },
    networks: ['10.1.0.0/16'],
  },
  {
    does: 'the nodes’ ranges',
    facts: { ...none, nodes: [node('b', { podCIDRs: ['10.2.1.0/24'] }), node('a', { podCIDRs: ['10.2.0.0/24'] })] },
    networks: ['10.2.0.0/24', '10.2.1.0/24'],
  },
  {
    does: 'no further range for a pod in a known range',
    facts: { ...none, nodes: [node('a', { podCIDRs: ['10.2.0.0/24'] })], podAddresses: ['10.2.0.9'] },
    networks: ['10.2.0.0/24'],
  },
  {
    does: 'a range around a pod outside the nodes’ ranges',
    facts: { ...none, nodes: [node('a', { podCIDRs: ['10.2.0.0/24'] })], podAddresses: ['192.168.7.9', 'fd00:1:2:3::5'] },
    networks: ['10.2.0.0/24', '192.168.0.0/16', 'fd00:1:2::/48'],
  },
])('the networks of pods are $does', ({ facts, networks }) => {
  expect(podNetworks(facts)).toEqual(networks)
})

test('every known pod lies in one of the networks', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.ipV4(), fc.ipV6()), { minLength: 1, maxLength: 5 }), (podAddresses) => {
      const list = new BlockList()
      for (const cidr of podNetworks({ ...none, podAddresses })) {
        const [net = '', prefix = ''] = cidr.split('/')
        list.addSubnet(net, Number(prefix), isIPv6(net) ? 'ipv6' : 'ipv4')
      }
      for (const address of podAddresses) expect(list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')).toBe(true)
    }),
  )
})
