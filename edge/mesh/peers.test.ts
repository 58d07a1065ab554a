import { expect, test } from 'vitest'
import type { EndpointSlice } from '../../crds/core.ts'
import { peersOf } from './peers.ts'

const slice = (body: Partial<EndpointSlice>): EndpointSlice => ({
  ...{
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    endpoints: [],
    ports: [{ name: 'mesh', port: 28_444 }],
  },
  metadata: {
    name: 'edge-main-mesh-x',
    uid: '1',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2030-01-01T00:00:00Z',
  },
  ...body,
})
const at = (address: string, name?: string) => ({ addresses: [address], ...(name !== undefined && { targetRef: { name } }) })

test.each([
  { does: 'no peer without slices', slices: [], peers: [] },
  {
    does: 'each pod by its name',
    slices: [slice({ endpoints: [at('10.0.0.1', 'edge-a'), at('10.0.0.2', 'edge-b')] })],
    peers: [
      { name: 'edge-a', host: '10.0.0.1', port: 28_444 },
      { name: 'edge-b', host: '10.0.0.2', port: 28_444 },
    ],
  },
  {
    does: 'an edge in two slices once',
    slices: [slice({ endpoints: [at('10.0.0.1', 'edge-a')] }), slice({ endpoints: [at('10.0.0.1', 'edge-a')] })],
    peers: [{ name: 'edge-a', host: '10.0.0.1', port: 28_444 }],
  },
  {
    does: 'an edge without a name by its address',
    slices: [slice({ endpoints: [at('10.0.0.1')] })],
    peers: [{ name: '10.0.0.1:28444', host: '10.0.0.1', port: 28_444 }],
  },
  {
    does: 'no peer behind another port',
    slices: [slice({ endpoints: [at('10.0.0.1')], ports: [{ name: 'ssh', port: 22 }] })],
    peers: [],
  },
  { does: 'no peer in an empty slice', slices: [slice({ endpoints: null, ports: null })], peers: [] },
])('finds $does', ({ slices, peers }) => {
  expect(peersOf(slices)).toEqual(peers)
})
