import type { TunnelPassword } from '../../crds/tunnel-password.ts'

/** What a test wants different from a new password of the tunnel `web`. */
export interface PasswordTraits {
  readonly metadata?: Partial<TunnelPassword['metadata']>
  readonly spec?: Partial<TunnelPassword['spec']>
  readonly status?: TunnelPassword['status']
}

/** A TunnelPassword as a store would return it, made by kubectl. */
export function tunnelPassword({ metadata, spec, status }: PasswordTraits = {}): TunnelPassword {
  const name = metadata?.name ?? 'p'
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'TunnelPassword',
    metadata: {
      ...{ name, namespace: 'acme--prod', uid: `uid-of-${name}`, resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T12:00:00Z',
      ...metadata,
    },
    spec: { tunnelRef: { name: 'web' }, sha256: 'a'.repeat(64), expiresAt: '2030-01-01T00:00:00Z', ...spec },
    status,
  }
}
