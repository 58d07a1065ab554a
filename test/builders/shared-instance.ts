import type { Condition } from '../../crds/kind.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'

/** What a test wants different from an instance that was asked for a moment ago. */
export interface InstanceTraits {
  readonly metadata?: Partial<SharedInstance['metadata']>
  readonly spec?: Partial<SharedInstance['spec']>
  readonly status?: SharedInstance['status']
}

/** A SharedInstance as a store would return it. */
export function sharedInstance({ metadata, spec, status }: InstanceTraits = {}): SharedInstance {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'SharedInstance',
    metadata: {
      name: 'i-1',
      namespace: 'acme--prod',
      uid: '3f1c3a52-5d3c-4a77-9a31-0f5f0c3f8f10',
      resourceVersion: '7',
      generation: 1,
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...metadata,
    },
    spec: {
      identifier: 'pr-42',
      region: REGION_ID,
      motor: 'postgresql-15.4.0',
      enabled: true,
      passwordVersion: 1,
      resetVersion: 0,
      extensions: [],
      ...spec,
    },
    ...(status && { status }),
  }
}

export const REGION_ID = '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01'

/** The `Ready` condition with this reason. */
export function readyCondition(status: Condition['status'], reason: string, observedGeneration = 1): Condition {
  return {
    type: 'Ready',
    status,
    reason,
    message: `because: ${reason}`,
    lastTransitionTime: '2026-01-02T03:04:06Z',
    observedGeneration,
  }
}

/** Status of an instance whose database works. */
export const claimedStatus = {
  observedGeneration: 1,
  conditions: [readyCondition('True', 'Claimed')],
  name: 'pr42k7q2mz4a7e',
  user: 'pr42k7q2mz4a7e',
  secretRef: { name: 'i-1-credentials' },
  host: 'db.example.com',
  port: 5432,
  isEnabled: true,
  engineVersion: '15.4',
  passwordVersion: 1,
  resetVersion: 0,
} as const satisfies SharedInstance['status']
