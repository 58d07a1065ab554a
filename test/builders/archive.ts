import type { AgentState } from '../../backup/agent-state.ts'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import { FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { archiveKeyOf } from '../../operator/dedicated-database/backups.ts'
import { readyCondition } from './resources.ts'

/** Fields that differ from those of an archive that was just made. */
export interface ArchiveTraits {
  readonly metadata?: Partial<DatabaseArchive['metadata']>
  readonly spec?: Partial<DatabaseArchive['spec']>
  readonly status?: DatabaseArchive['status']
}

/** Window of {@link archiving} and {@link agentState}. */
export const WINDOW = { earliest: '2026-01-02T00:00:00.000Z', latest: '2026-01-02T03:00:00.000Z' }

/** Status of an archive from which any moment of {@link WINDOW} can be restored. */
export const archiving = {
  observedGeneration: 1,
  conditions: [readyCondition('True', 'Archiving')],
  restoreWindow: WINDOW,
} as const satisfies DatabaseArchive['status']

/** Returns the archive of the database with this uid, with a finalizer, as a store would. */
export function databaseArchive(databaseUid: string, { metadata, spec, status }: ArchiveTraits = {}): DatabaseArchive {
  return {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'DatabaseArchive',
    metadata: {
      ...{ name: archiveKeyOf(databaseUid).name, namespace: SHARED_NAMESPACE, uid: `archive-of-${databaseUid}` },
      ...{ resourceVersion: '3', generation: 1, creationTimestamp: '2026-01-02T03:04:05Z', finalizers: [FINALIZER] },
      ...metadata,
    },
    spec: {
      ...{ databaseUid, database: 'orders', namespace: 'acme--prod', namespaceUid: 'uid-of-acme--prod', organization: 'acme' },
      ...{ motor: 'postgresql-15.4.0', retentionDays: 7, backupVersion: 0 },
      ...spec,
    },
    ...(status && { status }),
  }
}

/** Returns the state of an agent that has made a backup. */
export function agentState(state: Partial<AgentState> = {}): AgentState {
  return {
    at: '2026-01-02T03:04:00.000Z',
    backups: [
      {
        ...{ id: '20260102T000000Z-3f1c', startedAt: '2026-01-02T00:00:00.000Z', finishedAt: WINDOW.earliest },
        ...{ sizeBytes: 4_000_000, kind: 'scheduled', status: 'succeeded', lastVerifiedRestore: null },
      },
    ],
    restoreWindow: WINDOW,
    restoreWindows: [WINDOW],
    ...{
      backupVersion: 0,
      lastVerifiedRestore: null,
      drillReport: null,
      drillError: null,
      archivedAt: WINDOW.latest,
      problem: null,
    },
    ...{ storedBytes: 5_000_000, markedAt: null },
    ...state,
  }
}
