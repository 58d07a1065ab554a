import { expect, test } from 'vitest'
import { endpoint, service, settings } from '../../../test/support/operator/kubernetes-objects.ts'
import { addressPending, meshServiceOf, serviceOf } from './services.ts'

const portsOf = (spec: object, service: object = {}) =>
  (serviceOf(endpoint(spec), settings({ service })).spec?.ports ?? []).map(({ port, targetPort, nodePort }) => [
    port,
    targetPort,
    ...(nodePort === undefined ? [] : [nodePort]),
  ])

test.each([
  {
    does: 'by default the documented ports and the public ones lead to an edge',
    spec: {},
    service: {},
    ports: [
      [22_222, 22_222],
      [28_080, 28_080],
      [28_443, 28_443],
      [80, 28_080],
      [443, 28_443],
    ],
  },
  {
    does: 'an endpoint’s own ports lead to the same',
    spec: { ports: { ssh: 22, http: 80, https: 443 } },
    service: { type: 'LoadBalancer' },
    ports: [
      [22, 22_222],
      [80, 28_080],
      [443, 28_443],
    ],
  },
  {
    does: 'a port in the range of node ports is the node port',
    spec: { ports: { ssh: 30_022, http: 30_080, https: 30_443 } },
    service: { type: 'NodePort' },
    ports: [
      [30_022, 22_222, 30_022],
      [30_080, 28_080, 30_080],
      [30_443, 28_443, 30_443],
      [80, 28_080],
      [443, 28_443],
    ],
  },
])('$does', ({ spec, service, ports }) => {
  expect(portsOf(spec, service)).toEqual(ports)
})

test('a load balancer keeps the visitor’s address, and gets the settings of the chart', () => {
  const service = { type: 'LoadBalancer', annotations: { a: 'b' }, loadBalancerSourceRanges: ['192.0.2.0/24'] }
  expect(serviceOf(endpoint(), settings({ service }))).toMatchObject({
    metadata: { name: 'edge-eu', annotations: { a: 'b' } },
    spec: { externalTrafficPolicy: 'Local', loadBalancerSourceRanges: ['192.0.2.0/24'] },
  })
})

test('edges find each other by a Service that lists only ready edges', () => {
  expect(meshServiceOf(endpoint())).toMatchObject({
    metadata: { name: 'edge-eu-mesh', labels: { 'mooring.dev/endpoint': 'eu' } },
    spec: { clusterIP: 'None', publishNotReadyAddresses: false, ports: [{ port: 28_444 }] },
  })
})

test.each([
  { does: 'a load balancer without an address', of: service({ type: 'LoadBalancer' }), is: 'pending' },
  { does: 'one that has no status yet', of: { ...service({ type: 'LoadBalancer' }), status: undefined }, is: 'pending' },
  { does: 'an IP address', of: service({ type: 'LoadBalancer' }, [{ ip: '192.0.2.1' }]), is: 'there' },
  { does: 'a host name', of: service({ type: 'LoadBalancer' }, [{ hostname: 'lb.example' }]), is: 'there' },
  { does: 'a Service of the nodes', of: service({ type: 'NodePort' }), is: 'there' },
  { does: 'a Service of the cluster', of: service({ type: 'ClusterIP' }), is: 'there' },
])('the address of edges with $does is $is', ({ of, is }) => {
  expect(addressPending(of)).toEqual(is === 'pending' ? 'the load balancer of the Service pg-1 has no address yet' : undefined)
})
