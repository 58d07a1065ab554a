import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { REGION_ID } from './shared-instance.ts'

/** What a test wants different from an active endpoint of two edges. */
export interface EndpointTraits {
  readonly metadata?: Partial<TunnelEndpoint['metadata']>
  readonly spec?: Partial<TunnelEndpoint['spec']>
  readonly status?: TunnelEndpoint['status']
}

/** A TunnelEndpoint as a store would return it. */
export function tunnelEndpoint({ metadata, spec, status }: EndpointTraits = {}): TunnelEndpoint {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TunnelEndpoint',
    metadata: {
      ...{ name: 'default', uid: 'uid-of-default', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: {
      ...{ region: REGION_ID, domain: 'tunnel.example', sshHost: 'ssh.example', active: true, replicas: 2 },
      ...{ ports: { ssh: 22_222, http: 28_080, https: 28_443 }, publicHttpPort: 80, publicHttpsPort: 443 },
      ...{ certificates: 'perTunnel', issuer: 'local' },
      ...spec,
    },
    status,
  }
}
