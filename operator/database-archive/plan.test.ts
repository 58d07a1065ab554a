import { expect, test } from 'vitest'
import { agentState, type ArchiveTraits, databaseArchive, WINDOW } from '../../test/builders/archive.ts'
import { type Observed, planArchive } from './plan.ts'

const UID = '5b0c6f0e-2f7e-4b51-8a0f-3d2a9f6c7e01'
const NOW = new Date('2026-01-02T03:05:00Z')
const ORDER = { retentionDays: 7, backupVersion: 0 }
const archive = (traits: ArchiveTraits = {}) => databaseArchive(UID, traits)
const SEEN: Observed = {
  archive: archive(),
  hasDatabase: true,
  documents: { state: agentState(), order: ORDER },
  now: NOW,
}
const withState = (state: Parameters<typeof agentState>[0], order = ORDER): Observed => ({
  ...SEEN,
  documents: { state: agentState(state), order },
})

interface Row {
  readonly name: string
  readonly seen: Observed
  readonly does?: readonly string[]
  readonly reason?: string
  readonly again?: number
}

const ROWS: readonly Row[] = [
  { name: 'reports its window', seen: SEEN, reason: 'Archiving', again: 10_000 },
  {
    name: 'gets a finalizer and an order first',
    seen: { ...SEEN, archive: archive({ metadata: { finalizers: [] } }), documents: { state: undefined, order: undefined } },
    does: ['add-finalizer', 'order'],
    ...{ reason: 'FirstBackup', again: 2_000 },
  },
  {
    name: 'orders another retention',
    seen: { ...SEEN, archive: archive({ spec: { retentionDays: 9 } }) },
    does: ['order'],
    ...{ reason: 'Archiving', again: 10_000 },
  },
  {
    name: 'orders a backup, and reads its state more often until it is done',
    seen: { ...SEEN, archive: archive({ spec: { backupVersion: 1 } }) },
    does: ['order'],
    ...{ reason: 'Archiving', again: 2_000 },
  },
  {
    name: 'waits for the first backup',
    seen: withState({ restoreWindow: null, backups: [] }),
    ...{ reason: 'FirstBackup', again: 2_000 },
  },
  {
    name: 'reports the problem of its agent',
    seen: withState({ problem: { reason: 'RepositoryFull', message: 'no space is left' } }),
    ...{ reason: 'RepositoryFull', again: 2_000 },
  },
  {
    name: 'reports an agent that is silent for minutes',
    seen: withState({ at: '2026-01-02T03:02:59.000Z' }),
    ...{ reason: 'AgentSilent', again: 2_000 },
  },
  {
    name: 'reports an unavailable repository',
    seen: { ...SEEN, documents: { error: 'the bucket does not answer' } },
    ...{ reason: 'RepositoryUnavailable', again: 2_000 },
  },
  { name: 'without its database is kept for its retention', seen: { ...SEEN, hasDatabase: false }, does: ['keep'] },
  {
    name: 'that is kept needs no agent',
    seen: {
      ...withState({ at: '2026-01-01T00:00:00.000Z' }, { retentionDays: 1, backupVersion: 0 }),
      archive: archive({ spec: { keptUntil: '2026-01-09T00:00:00Z' } }),
      hasDatabase: false,
    },
    ...{ reason: 'Kept', again: 10_000 },
  },
  {
    name: 'is deleted when its retention ends',
    seen: { ...SEEN, archive: archive({ spec: { keptUntil: '2026-01-02T03:05:00Z' } }), hasDatabase: false },
    does: ['delete'],
  },
  {
    name: 'that is being deleted loses its objects first',
    seen: { ...SEEN, archive: archive({ metadata: { deletionTimestamp: '2026-01-02T03:04:30Z' } }), documents: undefined },
    does: ['remove-objects', 'release'],
  },
  {
    name: 'that is being deleted with its Namespace leaves its objects',
    seen: {
      ...{ ...SEEN, documents: undefined, isNamespaceGoing: true },
      archive: archive({ metadata: { deletionTimestamp: '2026-01-02T03:04:30Z' } }),
    },
    does: ['leave-objects', 'release'],
  },
  {
    name: 'without a finalizer is left to the store',
    seen: { ...SEEN, archive: archive({ metadata: { deletionTimestamp: '2026-01-02T03:04:30Z', finalizers: [] } }) },
  },
]

test.each(ROWS)('an archive $name', ({ seen, does = [], reason, again }) => {
  const { actions, decision, requeueAfterMs } = planArchive(seen)
  expect([actions, decision?.reason, requeueAfterMs]).toEqual([does, reason, again])
})

test('the status has the backups of the agent, without values that are not there yet', () => {
  const { fields } = planArchive(SEEN)
  expect(fields).toMatchObject({ restoreWindow: WINDOW, storedBytes: 5_000_000, archivedAt: WINDOW.latest })
  expect(fields.backups).toEqual([
    {
      ...{ id: '20260102T000000Z-3f1c', startedAt: '2026-01-02T00:00:00.000Z', finishedAt: WINDOW.earliest },
      ...{ sizeBytes: 4_000_000, kind: 'scheduled', status: 'succeeded' },
    },
  ])
})

test('the status says why the last drill failed, and what an earlier one read', () => {
  const drillReport = { tables: 12, rows: 1_204_332, compared: 11 }
  const { fields } = planArchive(withState({ lastVerifiedRestore: WINDOW.latest, drillReport, drillError: 'no space' }))
  expect(fields).toMatchObject({ lastVerifiedRestore: WINDOW.latest, drillReport, drillError: 'no space' })
})

test('a status keeps its fields while the repository is unavailable', () => {
  expect(planArchive({ ...SEEN, documents: { error: 'away' } }).fields).toEqual({})
})
