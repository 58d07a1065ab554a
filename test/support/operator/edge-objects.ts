import type { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelEndpointSpec } from '../../../crds/tunnel-endpoint.ts'
import { type EdgePodSettings, EdgePods } from '../../../operator/endpoint/kubernetes/settings.ts'

/** Returns an endpoint with the defaults, apart from the given fields. */
export const endpoint = (spec: object = {}): TunnelEndpoint => ({
  apiVersion: 'mooring.dev/v1alpha1',
  kind: 'TunnelEndpoint',
  metadata: { name: 'eu', uid: 'uid-of-eu', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: TunnelEndpointSpec.parse({
    region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01',
    domain: 't.test',
    sshHost: 'ssh.test',
    ...spec,
  }),
})

/** Returns the settings of edge pods in the form of the chart. */
export const settings = (given: object = {}): EdgePodSettings => EdgePods.parse(JSON.stringify({ image: 'mooring:1', ...given }))
