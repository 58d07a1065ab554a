import { ArchiveReason, type DatabaseArchive } from '../../crds/database-archive.ts'
import { DatabaseReason, type DedicatedDatabase, isCreated } from '../../crds/dedicated-database.ts'
import type { Draft } from '../../crds/kind.ts'
import { annotations, FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { partsOf } from '../../crds/motor.ts'
import { isRestorable, restoreWindowsOf, windowsText } from '../../shared/restorable-moment.ts'
import type { Patch } from '../../store/port.ts'
import { conditionOf } from '../../store/conditions.ts'
import { tenantSuffix } from '../shared-instance/kept-secret.ts'

/** Key of the DatabaseArchive of the DedicatedDatabase with this uid. */
export const archiveKeyOf = (uid: string) => ({ namespace: SHARED_NAMESPACE, name: `archive-${tenantSuffix(uid)}` })

/** State of the backups that a decision about a database depends on. */
export interface ObservedBackups {
  /** Whether this installation has a repository of backups. */
  readonly isOffered: boolean
  /** Archive of the database itself. */
  readonly archive: DatabaseArchive | undefined
  /** Archive of the database in `restoreFrom`, if this database may be restored from it. */
  readonly source: DatabaseArchive | undefined
  readonly now: Date
}

/** Actions on the archive of a database. */
export type ArchiveAction =
  /** Creates the archive, or gives it the desired retention and number of requested backups. */
  | 'archive'
  /** Sets the time until which the archive outlives its database. */
  | 'keep-archive'
  | 'delete-archive'

interface Refusal {
  readonly reason: DatabaseReason
  readonly message: string
}

/** Returns why a database cannot have its backups or its restore; undefined when it can. */
export function backupsRefusal(
  database: DedicatedDatabase,
  { isOffered, source, now }: ObservedBackups,
  hasServer: boolean,
): Refusal | undefined {
  const { spec } = database
  const unsupported = wantsBackups(database) ? (isOffered ? unsupportedMotor(spec.motor) : NO_REPOSITORY) : undefined
  if (unsupported !== undefined) return { reason: DatabaseReason.UnsupportedAddOn, message: unsupported }
  // A restore that has begun goes on: its server may have the data already.
  if (isCreated(database) || hasServer) return undefined
  const message = notRestorable(database, source, now)
  return message === undefined ? undefined : { reason: DatabaseReason.NotRestorable, message }
}

const NO_REPOSITORY = 'this installation has no repository of backups'

const wantsBackups = (database: DedicatedDatabase): boolean =>
  database.spec.pointInTimeRecovery !== undefined || (database.spec.restoreFrom !== undefined && !isCreated(database))

function unsupportedMotor(motor: DedicatedDatabase['spec']['motor']): string | undefined {
  return partsOf(motor).family === 'postgresql' ? undefined : `point-in-time recovery is not offered for ${motor}`
}

function notRestorable(database: DedicatedDatabase, source: DatabaseArchive | undefined, now: Date): string | undefined {
  const { restoreFrom, motor } = database.spec
  if (!restoreFrom) return undefined
  if (!source) return `there are no backups of a database ${restoreFrom.databaseId} that this one may be restored from`
  const { database: name } = source.spec
  if (source.metadata.deletionTimestamp !== undefined) return `the backups of ${name} are being removed`
  if (source.spec.motor !== motor) return `the backups of ${name} are of ${source.spec.motor}, not of ${motor}`
  if (restoreWindowsOf(source).length === 0) return `no moment of ${name} can be restored yet`
  const moment = new Date(restoreFrom.time)
  if (isRestorable(source, moment) || isAwaited(database, source, now)) return undefined
  return `${restoreFrom.time} is outside the restore window of ${name}: ${windowsText(source)}`
}

/** Time in ms after the creation of a database in which the window of its source must include the moment. */
const AWAITED_MS = 300_000
/** Maximum difference in ms between the clocks of the API server, of the source's server and of the operator. */
const SKEW_MS = 30_000

/** Whether the moment of a new database is after the window of its source, which still grows. */
function isAwaited({ metadata, spec: { restoreFrom } }: DedicatedDatabase, source: DatabaseArchive, now: Date): boolean {
  const window = source.status?.restoreWindow
  if (!restoreFrom || !window || source.spec.keptUntil !== undefined) return false
  const moment = Date.parse(restoreFrom.time)
  const age = now.getTime() - Date.parse(metadata.creationTimestamp)
  return Date.parse(window.latest) < moment && moment <= now.getTime() + SKEW_MS && age <= AWAITED_MS
}

/** Returns what the restore of a new database waits for before its server is created; undefined when it does not wait. */
export function restoreBlocker(database: DedicatedDatabase, { source, now }: ObservedBackups): string | undefined {
  const { restoreFrom } = database.spec
  if (!restoreFrom || !source || isRestorable(source, new Date(restoreFrom.time)) || !isAwaited(database, source, now))
    return undefined
  return `the backups of ${source.spec.database} reach ${source.status?.restoreWindow?.latest ?? ''} so far, and ${restoreFrom.time} within a minute`
}

/** Step for the archive of a database that is not being deleted, before its server is changed. */
export interface ArchiveStep {
  readonly actions: readonly ArchiveAction[]
  /** What the server waits for before it archives; undefined when it does not wait. */
  readonly blocker?: string | undefined
}

/**
 * Plans the archive of a database that should have one. An archive that is being removed is created again after its removal. A server begins
 * to archive when the repository has the order of its agent, which shows that the repository accepts writes.
 */
export function archiveStep({ spec }: DedicatedDatabase, archive: DatabaseArchive | undefined): ArchiveStep {
  if (!spec.pointInTimeRecovery) return { actions: [] }
  if (!archive) return { actions: ['archive'], blocker: PREPARED }
  if (archive.metadata.deletionTimestamp !== undefined) return { actions: [], blocker: 'its former backups are being removed' }
  const { retentionDays, backupVersion, keptUntil } = archive.spec
  const isDesired = retentionDays === spec.pointInTimeRecovery.retentionDays && backupVersion === spec.backupVersion
  const actions: readonly ArchiveAction[] = isDesired && keptUntil === undefined ? [] : ['archive']
  return { actions, blocker: blockerOf(archive) }
}

const PREPARED = 'its archive in the repository of backups is being prepared'

function blockerOf(archive: DatabaseArchive): string | undefined {
  const condition = conditionOf(archive, 'Ready')
  if (!condition) return PREPARED
  return AWAY.has(condition.reason) ? condition.message : undefined
}

const AWAY: ReadonlySet<string> = new Set([ArchiveReason.RepositoryUnavailable, ArchiveReason.RepositoryFull])

/** Whether the archive of a database that is not being deleted should be removed: its server runs without the add-on. */
export const isSuperfluous = ({ spec }: DedicatedDatabase, archive: DatabaseArchive | undefined): boolean =>
  spec.pointInTimeRecovery === undefined && archive !== undefined && archive.metadata.deletionTimestamp === undefined

/** Step for the archive of a database that is being deleted. */
export interface ArchiveEnd {
  readonly actions: readonly ArchiveAction[]
  /** What the deletion waits for; undefined when it does not wait. */
  readonly message: string | undefined
}

/** Plans the archive of a database that is being deleted, and whose server is gone. */
export function endOfArchive({ metadata }: DedicatedDatabase, archive: DatabaseArchive | undefined): ArchiveEnd {
  if (!archive) return { actions: [], message: undefined }
  const { keptUntil } = archive.spec
  const isGoing = archive.metadata.deletionTimestamp !== undefined
  if (!isGoing && metadata.annotations?.[annotations.keepBackups] === 'true') {
    return { actions: keptUntil === undefined ? ['keep-archive'] : [], message: undefined }
  }
  const why = isGoing ? conditionOf(archive, 'Ready')?.message : undefined
  const message = `its backups are being removed${why === undefined ? '' : `: ${why}`}`
  return { actions: isGoing ? [] : ['delete-archive'], message }
}

/** Slug of the organization of a database, and uid of its namespace. */
export type ArchiveOwner = Pick<DatabaseArchive['spec'], 'organization' | 'namespaceUid'>

/** Returns the draft of the archive of a database with the add-on. */
export function archiveOf({ metadata, spec }: DedicatedDatabase, owner: ArchiveOwner): Draft<typeof DatabaseArchive> {
  return {
    metadata: { ...archiveKeyOf(metadata.uid), finalizers: [FINALIZER] },
    spec: {
      databaseUid: metadata.uid,
      database: metadata.name,
      namespace: metadata.namespace ?? '',
      ...owner,
      motor: spec.motor,
      retentionDays: spec.pointInTimeRecovery?.retentionDays ?? 1,
      backupVersion: spec.backupVersion,
    },
  }
}

/** Returns the merge patch that gives an archive the retention and the number of requested backups of its database. */
export const archivePatch = ({ spec }: DedicatedDatabase): Patch => ({
  spec: {
    retentionDays: spec.pointInTimeRecovery?.retentionDays ?? 1,
    backupVersion: spec.backupVersion,
    keptUntil: null,
  },
})

const DAY_MS = 86_400_000

/** Returns the merge patch by which an archive outlives its database for the retention. */
export const keptPatch = ({ spec }: Pick<DatabaseArchive, 'spec'>, now: Date): Patch => ({
  spec: { keptUntil: new Date(now.getTime() + spec.retentionDays * DAY_MS).toISOString() },
})
