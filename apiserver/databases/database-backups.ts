import { z } from 'zod'
import type { Namespace } from '../../crds/core.ts'
import { type ArchivedBackup, type DatabaseArchive, isArchiveOf, WAITING_REASONS } from '../../crds/database-archive.ts'
import type { RestoreFrom } from '../../crds/parts/point-in-time-recovery.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { type Motor, partsOf } from '../../crds/motor.ts'
import { annotations } from '../../crds/names.ts'
import { isRestorable, isRestorableSoon, windowsText } from '../../shared/restorable-moment.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Scopes } from '../auth/scope.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal } from '../http/route.ts'
import type { CatchUp } from '../resources/cache-waits.ts'

/** One of the `backups` of the REST API (docs/api.md, "Point-in-time recovery"). */
export const BackupView = z
  .object({
    id: z.string(),
    startedAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().nullable(),
    sizeBytes: z.int().describe('Bytes in the repository.'),
    kind: z.enum(['scheduled', 'requested']),
    status: z.enum(['running', 'succeeded', 'failed']),
    error: z.string().nullable().describe('Why it failed.'),
    lastVerifiedRestore: z.iso
      .datetime()
      .nullable()
      .describe('Time at which a restore of this backup last succeeded. Null until the first restore drill.'),
  })
  .meta({ id: 'Backup' })
export type BackupView = z.output<typeof BackupView>

export function backupView({ finishedAt, error, lastVerifiedRestore, ...backup }: ArchivedBackup): BackupView {
  return { ...backup, finishedAt: finishedAt ?? null, error: error ?? null, lastVerifiedRestore: lastVerifiedRestore ?? null }
}

export const backupsOf = (archive: DatabaseArchive | undefined): readonly BackupView[] =>
  (archive?.status?.backups ?? []).map(backupView)

/** Returns why the backups of a database fail, and since when; null while they work. */
export function problemOf(archive: DatabaseArchive): { code: string; message: string; since: string } | null {
  const condition = conditionOf(archive, 'Ready')
  if (condition?.status !== 'False' || WAITING_REASONS.has(condition.reason)) return null
  const { reason: code, message, lastTransitionTime } = condition
  return { code, message, since: new Date(lastTransitionTime).toISOString() }
}

export interface BackupsDeps {
  readonly archives: Cache<typeof DatabaseArchive>
  readonly namespaces: Cache<typeof Namespace>
  /** Absent in an installation without a repository of backups. */
  readonly restoreGrants?: RestoreGrants | undefined
  readonly withoutBackups?: WithoutBackups
  readonly scopes: Scopes
  readonly catchUp: CatchUp
  readonly now: () => Date
}

/** Engines whose servers run in containers of Docker. Backups need a server that is a process of this machine. Absent: none. */
export type WithoutBackups = ReadonlySet<Motor> | undefined

/** Whether a dedicated database of this engine can have point-in-time recovery, in an installation that makes backups. */
export const hasPointInTimeRecovery = (engine: Motor, without: WithoutBackups): boolean =>
  partsOf(engine).family === 'postgresql' && !without?.has(engine)

/** Returns the archive of a database, which may be deleted. */
export function archiveOf(archives: BackupsDeps['archives'], databaseId: string): DatabaseArchive | undefined {
  const uid = databaseId.toLowerCase()
  return archives.list().find(({ spec }) => spec.databaseUid === uid)
}

/** Whether the Namespace of an archive is still the one of its database. */
export const hasNamespace = ({ namespaces }: Pick<BackupsDeps, 'namespaces'>, archive: DatabaseArchive): boolean =>
  isArchiveOf(archive, namespaces.get({ name: archive.spec.namespace }))

interface BackupFields {
  readonly pointInTimeRecovery?: object | null | undefined
  readonly restoreFrom?: object | null | undefined
}

/** Rejects add-ons that this installation or the engine does not have. @throws ApiError `unsupported_addon` */
export function requireBackups(deps: BackupsDeps, engine: Motor, body: BackupFields): void {
  const fields = (['pointInTimeRecovery', 'restoreFrom'] as const).filter((field) => body[field])
  if (fields.length === 0 || (deps.restoreGrants && hasPointInTimeRecovery(engine, deps.withoutBackups))) return
  const why = whyNone(deps, engine)
  const details = fields.map((field) => ({ field, message: `${why}; leave it out` }))
  throw new ApiError('unsupported_addon', details.map(({ field, message }) => `${field}: ${message}`).join('; '), { details })
}

function whyNone({ restoreGrants, withoutBackups }: BackupsDeps, engine: Motor): string {
  if (!restoreGrants) return 'this installation makes no backups'
  if (!withoutBackups?.has(engine)) return `point-in-time recovery is not offered for ${engine}`
  return `servers of ${engine} run in containers of Docker here, whose data are not backed up`
}

/** New database that is restored. */
export interface NewDatabase {
  readonly engine: Motor
  readonly namespace: string
  readonly name: string
}

/** What a restored database has in addition. */
export interface RestoreDraft {
  readonly restoreFrom: RestoreFrom
  readonly annotations: Readonly<Record<string, string>>
}

/** Rights that a caller needs where the former database is: its data become readable. */
const NEEDS = [
  { verb: 'create', resource: 'dedicateddatabases' },
  { verb: 'get', resource: 'secrets' },
] as const

/**
 * Creates the check of `restoreFrom`. The error for a database that does not exist is the same as for one where the caller is not an editor.
 * @throws ApiError `unknown_database`, `unsupported_motor`, `outside_restore_window`
 */
export function createRestoreCheck({ archives, namespaces, restoreGrants, scopes, catchUp, now }: BackupsDeps) {
  async function find(principal: Principal, databaseId: string): Promise<DatabaseArchive> {
    const archive = await catchUp(archives, () => archiveOf(archives, databaseId))
    const isThere = archive !== undefined && archive.metadata.deletionTimestamp === undefined
    if (isThere && (await mayRestore(principal, archive))) return archive
    throw wrong('unknown_database', 'restoreFrom.databaseId', `there are no backups of a database ${databaseId}`)
  }

  async function mayRestore(principal: Principal, archive: DatabaseArchive): Promise<boolean> {
    if (!hasNamespace({ namespaces }, archive)) return false
    const { namespace } = archive.spec
    const rights = await Promise.all(NEEDS.map((need) => scopes.may(principal, { ...need, namespace })))
    return rights.every((right) => right)
  }

  return async function restoreDraft(
    principal: Principal,
    { databaseId, time }: RestoreFrom,
    { engine, namespace, name }: NewDatabase,
  ): Promise<RestoreDraft> {
    const archive = await find(principal, databaseId)
    const { spec } = archive
    if (spec.motor !== engine) {
      throw wrong('unsupported_motor', 'engine', `must be ${spec.motor}, as the database that is restored`)
    }
    const moment = new Date(time)
    requireRestorable(archive, moment, now())
    // Specs have times in UTC. The grant is of the time in the spec.
    const restoreFrom = { databaseId: spec.databaseUid, time: moment.toISOString() }
    const isForeign = spec.namespace !== namespace && restoreGrants
    const grant = isForeign ? { [annotations.restoreGrant]: restoreGrants({ ...restoreFrom, namespace, name }) } : {}
    return { restoreFrom, annotations: grant }
  }
}

/** Accepts a moment in a restore window, and one that has just passed: the restore then begins when the window includes it, in less than a minute. */
function requireRestorable(archive: DatabaseArchive, moment: Date, now: Date): void {
  if (isRestorable(archive, moment) || isRestorableSoon(archive, moment, now)) return
  const windows = windowsText(archive)
  const message =
    windows === '' ? 'no moment of this database can be restored yet' : `must be within the restore window, ${windows}`
  throw wrong('outside_restore_window', 'restoreFrom.time', message)
}

function wrong(
  code: 'unknown_database' | 'unsupported_motor' | 'outside_restore_window',
  field: string,
  message: string,
): ApiError {
  return new ApiError(code, `${field}: ${message}`, { details: [{ field, message }] })
}

/** Returns the fields about backups of a database; null without the add-on. */
export function backupFieldsOf({ spec, status }: DedicatedDatabase): {
  readonly restoreWindow: { earliest: string; latest: string } | null
  readonly lastVerifiedRestore: string | null
} {
  const { restoreWindow, lastVerifiedRestore = null } = (spec.pointInTimeRecovery && status) ?? {}
  return { restoreWindow: restoreWindow ? { ...restoreWindow } : null, lastVerifiedRestore }
}
