import { expect, test } from 'vitest'
import type { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { annotations } from '../../crds/names.ts'
import { archiving, type ArchiveTraits, databaseArchive, WINDOW } from '../../test/builders/archive.ts'
import { dedicatedDatabase, dedicatedServer, plan, runningStatus } from '../../test/builders/dedicated.ts'
import { readyCondition, tunnelEndpoint } from '../../test/builders/resources.ts'
import { keptPatch } from './backups.ts'
import { type Observed, planDatabase } from './plan.ts'

/** 55 s after the creation of the databases. */
const NOW = new Date('2026-01-02T03:05:00Z')
const OTHER = '9a4e1f6c-6a55-4c6e-9a6b-4f6f1d1c0a99'
const KEPT = { passwordVersion: 1, passwordId: 'an-id', host: '127.0.0.1', port: 5432, usesTls: false, tidy: true }
const { uid } = dedicatedDatabase().metadata
const own = (traits: ArchiveTraits = {}): DatabaseArchive => databaseArchive(uid, { status: archiving, ...traits })
const other = (traits: ArchiveTraits = {}): DatabaseArchive => databaseArchive(OTHER, { status: archiving, ...traits })

type Spec = Partial<DedicatedDatabase['spec']>
const RECOVERY: Spec = { pointInTimeRecovery: { retentionDays: 7 } }
const restoreAt = (time: string): Spec => ({ restoreFrom: { databaseId: OTHER, time } })
const RESTORE = restoreAt('2026-01-02T02:00:00Z')

/** Window before a gap in the log, which {@link WINDOW} follows. */
const EARLIER = { earliest: '2026-01-01T10:00:00.000Z', latest: '2026-01-01T12:00:00.000Z' }
const WITH_GAP = { ...archiving, restoreWindows: [EARLIER, WINDOW] }

const NEW: Observed = {
  ...{ database: dedicatedDatabase(), full: undefined, region: 'served', plan: plan(), organization: 'acme', namespaceUid: 'u' },
  ...{
    server: undefined,
    endpoint: undefined,
    isOpen: false,
    secret: undefined,
    passwordChanged: false,
    extensionsChanged: false,
  },
  backups: { isOffered: true, archive: undefined, source: undefined, now: NOW },
}
const fresh = (spec: Spec, backups: Partial<Observed['backups']> = {}): Observed => ({
  ...NEW,
  database: dedicatedDatabase({ spec }),
  backups: { ...NEW.backups, ...backups },
})
const ARCHIVED = dedicatedServer({ spec: { archive: { prefix: uid } } })
const running = (spec: Spec, more: Partial<Observed> = {}): Observed => ({
  ...{ ...NEW, server: ARCHIVED, isOpen: true, secret: KEPT },
  database: dedicatedDatabase({ spec, status: runningStatus }),
  backups: { ...NEW.backups, archive: own() },
  ...more,
})
const going = (more: Partial<Observed> = {}, notes: Readonly<Record<string, string>> = {}): Observed => ({
  ...NEW,
  database: dedicatedDatabase({
    metadata: { deletionTimestamp: '2026-01-02T03:04:30Z', annotations: notes },
    spec: RECOVERY,
    status: runningStatus,
  }),
  backups: { ...NEW.backups, archive: own() },
  ...more,
})
const beingRemoved = own({
  metadata: { deletionTimestamp: '2026-01-02T03:04:30Z' },
  status: { conditions: [{ ...readyCondition('False', 'RepositoryUnavailable'), message: 'the bucket does not answer' }] },
})
const without = (archive: DatabaseArchive | undefined): Observed['backups'] => ({ ...NEW.backups, archive })

interface Row {
  readonly name: string
  readonly seen: Observed
  readonly does?: readonly string[]
  readonly phase?: string
  readonly reason?: string
  readonly message?: string
}

const ROWS: readonly Row[] = [
  {
    name: 'with the add-on gets an archive before its server',
    seen: fresh(RECOVERY),
    does: ['archive'],
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'waits until the repository has the order of its agent',
    seen: fresh(RECOVERY, { archive: databaseArchive(uid) }),
    ...{ phase: 'provisioning', reason: 'StartingServer', message: 'prepared' },
  },
  {
    name: 'waits for an unavailable repository',
    seen: fresh(RECOVERY, { archive: { ...beingRemoved, metadata: own().metadata } }),
    ...{ phase: 'provisioning', reason: 'StartingServer', message: 'the bucket does not answer' },
  },
  {
    name: 'gets its server when the repository has the order',
    seen: fresh(RECOVERY, { archive: own() }),
    does: ['server'],
    ...{ phase: 'provisioning', reason: 'StartingServer' },
  },
  {
    name: 'of another engine has no add-on',
    seen: { ...fresh({ ...RECOVERY, motor: 'mariadb-10.7.4' }), plan: plan({ engines: ['mariadb-10.7.4'] }) },
    ...{ phase: 'failed', reason: 'UnsupportedAddOn' },
  },
  {
    name: 'has no add-on in an installation without a repository',
    seen: fresh(RECOVERY, { isOffered: false }),
    ...{ phase: 'failed', reason: 'UnsupportedAddOn', message: 'no repository' },
  },
  {
    name: 'is restored from an archive whose window has the moment',
    seen: fresh(RESTORE, { source: other() }),
    does: ['server'],
    ...{ phase: 'restoring', reason: 'Restoring' },
  },
  {
    name: 'is not restored from an archive that it may not read',
    seen: fresh(RESTORE),
    ...{ phase: 'failed', reason: 'NotRestorable', message: OTHER },
  },
  {
    name: 'is not restored to a moment before the window',
    seen: fresh(restoreAt('2026-01-01T23:59:59.999Z'), { source: other() }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: `${WINDOW.earliest} to ${WINDOW.latest}` },
  },
  {
    name: 'waits for a window that grows towards a moment that has just passed',
    seen: fresh(restoreAt('2026-01-02T03:04:59Z'), { source: other() }),
    ...{ phase: 'restoring', reason: 'Restoring', message: `reach ${WINDOW.latest} so far` },
  },
  {
    name: 'is not restored when the window has not reached the moment after five minutes',
    seen: fresh(restoreAt('2026-01-02T03:04:59Z'), { source: other(), now: new Date('2026-01-02T03:09:06Z') }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: `${WINDOW.earliest} to ${WINDOW.latest}` },
  },
  {
    name: 'is not restored to a moment in the future',
    seen: fresh(restoreAt('2026-01-02T03:05:31Z'), { source: other() }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: `${WINDOW.earliest} to ${WINDOW.latest}` },
  },
  {
    name: 'is not restored to a moment after the end of kept backups',
    seen: fresh(restoreAt('2026-01-02T03:04:59Z'), { source: other({ spec: { keptUntil: '2026-01-09T00:00:00Z' } }) }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: `${WINDOW.earliest} to ${WINDOW.latest}` },
  },
  {
    name: 'is restored to a moment before a gap',
    seen: fresh(restoreAt('2026-01-01T11:00:00Z'), { source: other({ status: WITH_GAP }) }),
    does: ['server'],
    ...{ phase: 'restoring', reason: 'Restoring' },
  },
  {
    name: 'is not restored to a moment in a gap',
    seen: fresh(restoreAt('2026-01-01T18:00:00Z'), { source: other({ status: WITH_GAP }) }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: `${EARLIER.latest}, or ${WINDOW.earliest}` },
  },
  {
    name: 'is not restored from another engine',
    seen: fresh(RESTORE, { source: other({ spec: { motor: 'postgresql-14.4.0' } }) }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: 'postgresql-14.4.0' },
  },
  {
    name: 'is not restored before the first backup',
    seen: fresh(RESTORE, { source: databaseArchive(OTHER) }),
    ...{ phase: 'failed', reason: 'NotRestorable', message: 'yet' },
  },
  {
    name: 'whose restore has begun goes on without the archive',
    seen: { ...fresh(RESTORE), server: dedicatedServer(), isOpen: true },
    does: ['secret', 'adopt', 'claim', 'admit', 'verify', 'extensions'],
    ...{ phase: 'running', reason: 'Running' },
  },
  { name: 'with the add-on in force needs nothing', seen: running(RECOVERY), phase: 'running', reason: 'Running' },
  {
    name: 'gives its archive another retention',
    seen: running({ pointInTimeRecovery: { retentionDays: 9 } }),
    does: ['archive'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'requests a backup',
    seen: running({ ...RECOVERY, backupVersion: 1 }),
    does: ['archive'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'with new backups and a new SSH tunnel gets hostname and archive before its server is changed',
    seen: running(
      { ...RECOVERY, sshTunnel: { authMode: 'both', authorizedKeys: [] } },
      { server: dedicatedServer(), endpoint: tunnelEndpoint(), backups: without(undefined) },
    ),
    does: ['assign-hostname', 'archive'],
    ...{ phase: 'updating', reason: 'Updating', message: 'prepared' },
  },
  {
    name: 'without the add-on gets a server without archiving first',
    seen: running({}),
    does: ['server'],
    ...{ phase: 'updating', reason: 'Updating' },
  },
  {
    name: 'without the add-on loses its backups when its server does not archive any more',
    seen: running({}, { server: dedicatedServer() }),
    does: ['delete-archive'],
    ...{ phase: 'running', reason: 'Running' },
  },
  {
    name: 'that wants the add-on again waits for the removal of its former backups',
    seen: running(RECOVERY, { server: dedicatedServer(), backups: without(beingRemoved) }),
    ...{ phase: 'updating', reason: 'Updating', message: 'former backups' },
  },
  {
    name: 'that is being deleted keeps its archive while its server is there',
    seen: going({ server: ARCHIVED }),
    does: ['delete-server'],
    ...{ phase: 'deleting', reason: 'Deleting' },
  },
  {
    name: 'that is being deleted loses its backups after its server',
    seen: going(),
    does: ['delete-archive'],
    ...{ phase: 'deleting', reason: 'Deleting' },
  },
  {
    name: 'that is being deleted waits for an unavailable repository',
    seen: going({ backups: without(beingRemoved) }),
    ...{ phase: 'deleting', reason: 'Deleting', message: 'the bucket does not answer' },
  },
  {
    name: 'is released when its backups are gone',
    seen: going({ backups: without(undefined) }),
    does: ['record-usage', 'forget-secret', 'release'],
  },
  {
    name: 'is released by force while the repository is unavailable',
    seen: going({ backups: without(beingRemoved) }, { [annotations.forceDelete]: 'true' }),
    does: ['record-usage', 'forget-secret', 'release'],
  },
  {
    name: 'keeps its backups when asked',
    seen: going({}, { [annotations.keepBackups]: 'true' }),
    does: ['keep-archive', 'record-usage', 'forget-secret', 'release'],
  },
  {
    name: 'whose backups are kept is released',
    seen: going(
      { backups: without(own({ spec: { keptUntil: '2026-01-09T00:00:00Z' } })) },
      { [annotations.keepBackups]: 'true' },
    ),
    does: ['record-usage', 'forget-secret', 'release'],
  },
]

test.each(ROWS)('a database $name', ({ seen, does = [], phase, reason, message }) => {
  const { actions, state } = planDatabase(seen)
  expect([actions, state?.phase, state?.decision.reason]).toEqual([does, phase, reason])
  if (message !== undefined) expect(state?.decision.message).toContain(message)
})

test('kept backups stay for their retention', () => {
  expect(keptPatch(own(), new Date('2026-01-02T03:05:00Z'))).toEqual({ spec: { keptUntil: '2026-01-09T03:05:00.000Z' } })
})
