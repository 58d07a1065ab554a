import type { Region } from '../../crds/region.ts'
import { REGION_ID } from './shared-instance.ts'

/** A Region that runs PostgreSQL 15, as a store would return it. */
export function region(spec: Partial<Region['spec']> = {}): Region {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Region',
    metadata: {
      name: spec.name ?? 'local',
      uid: `uid-of-${spec.name ?? 'local'}`,
      resourceVersion: '3',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { id: REGION_ID, regionId: 1, name: 'local', motors: [{ id: 'postgresql-15.4.0', warm: true }], ...spec },
  }
}
