import { BlockList, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { node } from '../../../test/support/operator/server-objects.ts'
import { podNetworks } from './pod-networks.ts'

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
