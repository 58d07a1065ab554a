import type { ApiToken } from '../../crds/api-token.ts'

/** What a test wants different from a new token of a viewer. */
export interface ApiTokenTraits {
  readonly metadata?: Partial<ApiToken['metadata']>
  readonly spec?: Partial<ApiToken['spec']>
}

/** An ApiToken as a store would return it, made by kubectl. */
export function apiToken({ metadata, spec }: ApiTokenTraits = {}): ApiToken {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'ApiToken',
    metadata: {
      ...{ name: 'ci', namespace: 'acme--prod', uid: 'uid-of-ci', resourceVersion: '3', generation: 1 },
      creationTimestamp: '2026-01-01T12:00:00Z',
      ...metadata,
    },
    spec: { displayName: 'ci', role: 'viewer', expiresAt: '2030-01-01T00:00:00Z', sha256: '0'.repeat(64), ...spec },
    status: undefined,
  }
}
