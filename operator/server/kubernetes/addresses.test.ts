import { expect, test } from 'vitest'
import { callersAddress, certificateNames } from './addresses.ts'
import { node, pod, service, desired } from '../../../test/support/operator/kubernetes-objects.ts'

const nodes = [
  node('n1', { labels: { disk: 'ssd' }, addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] }),
  node('n2', {
    addresses: [
      { type: 'Hostname', address: 'n2' },
      { type: 'InternalIP', address: '10.0.0.2' },
      { type: 'ExternalIP', address: '203.0.113.2' },
    ],
  }),
]
const on = (nodeName: string) => pod({ hostIP: '10.0.0.9' }, { nodeName })

test.each([
  { does: 'ClusterIP: the Service’s name', is: {}, at: {}, expected: { host: 'pg-1.mooring-shared.svc', port: 5432 } },
  { does: 'ClusterIP: the region’s host', is: { host: 'db.example' }, at: {}, expected: { host: 'db.example', port: 5432 } },
  {
    does: 'LoadBalancer: its address',
    is: { exposure: 'LoadBalancer' },
    at: { service: service({}, [{ ip: '192.0.2.1' }]) },
    expected: { host: '192.0.2.1', port: 5432 },
  },
  {
    does: 'LoadBalancer: its name rather than its address',
    is: { exposure: 'LoadBalancer' },
    at: { service: service({}, [{ ip: '192.0.2.1', hostname: 'lb.example' }]) },
    expected: { host: 'lb.example', port: 5432 },
  },
  { does: 'LoadBalancer: not before it has one', is: { exposure: 'LoadBalancer' }, at: {}, expected: /load balancer/ },
  {
    does: 'NodePort: the inner address of the pod’s node',
    is: { exposure: 'NodePort' },
    at: { pod: on('n1') },
    expected: { host: '10.0.0.1', port: 31_234 },
  },
  {
    does: 'NodePort: the outer address of the pod’s node',
    is: { exposure: 'NodePort' },
    at: { pod: on('n2') },
    expected: { host: '203.0.113.2', port: 31_234 },
  },
  {
    does: 'NodePort: the node address in the pod’s status, when nodes cannot be listed',
    is: { exposure: 'NodePort' },
    at: { pod: on('n3') },
    expected: { host: '10.0.0.9', port: 31_234 },
  },
  { does: 'NodePort: not before there is a node', is: { exposure: 'NodePort' }, at: {}, expected: /no node/ },
  {
    does: 'NodePort: not before there is a port',
    is: { exposure: 'NodePort', host: 'db.example' },
    at: { service: service({ ports: [{ port: 5432 }] }) },
    expected: /no port/,
  },
] as const)('the address for callers is, $does', ({ is, at, expected }) => {
  const found = callersAddress(desired(is), { service: service(), pod: undefined, nodes, ...at })
  if (expected instanceof RegExp) expect(found).toMatch(expected)
  else expect(found).toEqual(expected)
})

const IN_CLUSTER = [
  'pg-1',
  'pg-1.mooring-shared',
  'pg-1.mooring-shared.svc',
  'pg-1.mooring-shared.svc.cluster.local',
  '10.96.0.7',
  // Behind `kubectl port-forward` and the SSH tunnel of a dedicated database.
  'localhost',
  '127.0.0.1',
]

test.each([
  { does: 'its names in the cluster', is: {}, at: {}, more: [] },
  { does: 'the region’s host', is: { host: 'db.example' }, at: {}, more: ['db.example'] },
  {
    does: 'all that a load balancer has',
    is: { exposure: 'LoadBalancer' },
    at: { service: service({}, [{ ip: '192.0.2.1' }, { hostname: 'lb.example' }]) },
    more: ['192.0.2.1', 'lb.example'],
  },
  {
    does: 'all nodes that it may run on, and the one that it runs on',
    is: { exposure: 'NodePort', nodeSelector: { disk: 'ssd' } },
    at: { pod: on('n3') },
    more: ['10.0.0.1', '10.0.0.9'],
  },
] as const)('its certificate is for $does', ({ is, at, more }) => {
  const names = certificateNames(desired(is), { service: service(), pod: undefined, nodes, ...at })
  expect(names).toEqual([...IN_CLUSTER, ...more].toSorted())
})
