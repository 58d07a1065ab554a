import type { DatabaseServer } from '../../crds/database-server.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { readyCondition, REGION_ID } from './shared-instance.ts'

/** What a test wants different from a shared PostgreSQL 15 server that runs. */
export interface ServerTraits {
  readonly metadata?: Partial<DatabaseServer['metadata']>
  readonly spec?: Partial<DatabaseServer['spec']>
  readonly status?: DatabaseServer['status']
}

/** A DatabaseServer as a store would return it. */
export function databaseServer({ metadata, spec, status }: ServerTraits = {}): DatabaseServer {
  const name = metadata?.name ?? 'postgresql-15-4-0-r1-1'
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'DatabaseServer',
    metadata: {
      name,
      namespace: SHARED_NAMESPACE,
      uid: `uid-of-${name}`,
      resourceVersion: '5',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: { motor: 'postgresql-15.4.0', region: REGION_ID, tenancy: 'shared', capacity: 2, ...spec },
    status: status ?? { host: '127.0.0.1', port: 5432, conditions: [readyCondition('True', 'Running')] },
  }
}
