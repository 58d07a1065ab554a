import { FINALIZER } from '../../crds/names.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import { TunnelConfig } from '../../crds/tunnel-config.ts'

/** What a test wants different from a new tunnel with defaults alone. */
export interface TunnelTraits {
  readonly metadata?: Partial<Tunnel['metadata']>
  readonly spec?: Partial<Tunnel['spec']>
  readonly status?: Tunnel['status']
}

/** A Tunnel as a store would return it. */
export function tunnel({ metadata, spec, status }: TunnelTraits = {}): Tunnel {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: {
      ...{ name: 'web', namespace: 'acme--prod', uid: 'uid-of-web', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: { regionId: 1, config: TunnelConfig.parse({}), ...spec },
    status,
  }
}
