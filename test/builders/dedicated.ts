import type { DatabaseServer } from '../../crds/database-server.ts'
import { type DedicatedDatabase, RULES_VERSION } from '../../crds/dedicated-database.ts'
import { FINALIZER } from '../../crds/names.ts'
import type { Plan } from '../../crds/plan.ts'
import { databaseServer, readyCondition, REGION_ID, type ServerTraits } from './resources.ts'
import { serverNameOf } from '../../operator/dedicated-database/resources.ts'

const UID = '5b0c6f0e-2f7e-4b51-8a0f-3d2a9f6c7e01'

/** Fields that differ from those of a new database. */
export interface DatabaseTraits {
  readonly metadata?: Partial<DedicatedDatabase['metadata']>
  readonly spec?: Partial<DedicatedDatabase['spec']>
  readonly status?: DedicatedDatabase['status']
}

/** Returns a DedicatedDatabase with a finalizer as a store would. */
export function dedicatedDatabase({ metadata, spec, status }: DatabaseTraits = {}): DedicatedDatabase {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'DedicatedDatabase',
    metadata: {
      ...{ name: 'orders', namespace: 'acme--prod', uid: UID, resourceVersion: '7', generation: 1 },
      creationTimestamp: '2026-01-02T03:04:05Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: {
      ...{ motor: 'postgresql-15.4.0', region: REGION_ID, plan: 'small' },
      ...{ privateNetwork: false, monitoring: false, extensions: [], passwordVersion: 1, backupVersion: 0 },
      ...spec,
    },
    ...(status && { status }),
  }
}

/** Status of a database that runs on the server of {@link dedicatedServer}. */
export const runningStatus = {
  observedGeneration: 1,
  conditions: [readyCondition('True', 'Running')],
  ...{ phase: 'running', rulesVersion: RULES_VERSION },
  ...{ name: 'orders7k2qmzabcd', user: 'orders7k2qmzabcd', secretRef: { name: 'orders-credentials' } },
  ...{ host: '127.0.0.1', port: 5432, passwordVersion: 1, passwordId: 'an-id', plan: 'small', storageGiB: 10 },
  serverRef: { name: serverNameOf(UID) },
} as const satisfies DedicatedDatabase['status']

/** Returns the Plan `small`. */
export function plan(spec: Partial<Plan['spec']> = {}): Plan {
  const price = { amount: '9.00', currency: 'EUR', unit: 'month' }
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Plan',
    metadata: { name: 'small', uid: 'p', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      ...{ name: 'Small', cpu: 1, memoryMiB: 1_024, storageGiB: 10, engines: ['postgresql-15.4.0'] },
      ...{ closedByDefault: false, price, billableItems: [] },
      ...spec,
    },
  }
}

/** Returns a plan that differs from `small` in its name too. */
export function namedPlan(name: string, spec: Partial<Plan['spec']> = {}): Plan {
  const { metadata, ...rest } = plan(spec)
  return { ...rest, metadata: { ...metadata, name, uid: `uid-of-${name}` } }
}

/** Returns the running server of the database, sized by the Plan `small`. */
export function dedicatedServer({ spec, status }: Pick<ServerTraits, 'spec' | 'status'> = {}): DatabaseServer {
  return databaseServer({
    metadata: { name: serverNameOf(UID) },
    spec: {
      ...{ tenancy: 'dedicated', capacity: 1 },
      size: { cpu: 1, memoryMiB: 1_024, storageGiB: 10 },
      access: { organization: 'acme', isPrivate: false },
      ...spec,
    },
    status: {
      ...{ observedGeneration: 1, host: '127.0.0.1', port: 5432, conditions: [readyCondition('True', 'Running')] },
      ...status,
    },
  })
}
