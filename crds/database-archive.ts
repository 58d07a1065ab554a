import { z } from 'zod'
import { AGE_COLUMN, commonStatus, defineKind, READY_COLUMNS, type Resource, UTC_RULE } from './kind.ts'
import { Motor } from './motor.ts'
import { RestoreWindow, RetentionDays } from './parts/point-in-time-recovery.ts'

/** Reasons of an archive's `Ready` condition. */
export const ArchiveReason = {
  /** Backups and write-ahead log are in the repository, up to the end of the restore window. */
  Archiving: 'Archiving',
  /** No base backup is complete yet. */
  FirstBackup: 'FirstBackup',
  /** The database was deleted, and its backups are kept. */
  Kept: 'Kept',
  /** The repository cannot be reached, or refuses the credentials. */
  RepositoryUnavailable: 'RepositoryUnavailable',
  /** The repository has no space left. */
  RepositoryFull: 'RepositoryFull',
  /** An object in the repository is damaged; the message names it. */
  ArchiveCorrupt: 'ArchiveCorrupt',
  BackupFailed: 'BackupFailed',
  /** The agent cannot log in to the database server. */
  ServerUnreachable: 'ServerUnreachable',
  /** The agent of the database server has not reported for minutes. */
  AgentSilent: 'AgentSilent',
  /** The backups are being removed. */
  Deleting: 'Deleting',
} as const
export type ArchiveReason = (typeof ArchiveReason)[keyof typeof ArchiveReason]

/** Reasons of an archive that is not ready although nothing has failed. */
export const WAITING_REASONS: ReadonlySet<string> = new Set([ArchiveReason.FirstBackup, ArchiveReason.Deleting])

/** Base backup in the status of an archive. */
export const ArchivedBackup = z.object({
  id: z.string().max(64).describe('Id of the backup.'),
  startedAt: z.string().max(32).describe('Time at which it began.'),
  finishedAt: z.string().max(32).optional().describe('Time at which it ended.'),
  sizeBytes: z.int().min(0).describe('Bytes in the repository.'),
  kind: z.enum(['scheduled', 'requested']).describe('Whether a schedule or a request caused it.'),
  status: z.enum(['running', 'succeeded', 'failed']).describe('State of the backup.'),
  error: z.string().max(1024).optional().describe('Why it failed.'),
  lastVerifiedRestore: z.string().max(32).optional().describe('Time at which a restore of it last succeeded.'),
})
export type ArchivedBackup = z.output<typeof ArchivedBackup>

/** Result of the last successful restore drill. */
const DrillReport = z
  .object({
    tables: z.int().min(0).describe('Tables whose rows were all read.'),
    rows: z.int().min(0).describe('Rows of these tables.'),
    compared: z.int().min(0).describe('Tables whose number of rows and checksum were those of the live database.'),
  })
  .describe('Result of that restore drill.')

/** Maximum number of intervals in a status. */
export const RESTORE_WINDOWS_MAX = 36

/** Maximum number of backups in a status. */
export const BACKUPS_MAX = 100

export const DatabaseArchiveSpec = z.object({
  databaseUid: z
    .uuid('must be the uid of a DedicatedDatabase')
    .max(36)
    .describe('Uid of the DedicatedDatabase, which is also the prefix of its objects in the repository.'),
  database: z.string().min(1).max(63).describe('Name of the DedicatedDatabase.'),
  namespace: z.string().min(1).max(63).describe('Namespace of the DedicatedDatabase.'),
  namespaceUid: z
    .string()
    .min(1)
    .max(64)
    .describe('Uid of that Namespace. A later Namespace of the same name has no access to the backups.'),
  organization: z.string().min(1).max(30).describe('Slug of the organization of that namespace.'),
  motor: Motor,
  retentionDays: RetentionDays,
  backupVersion: z.int().min(0).max(1_000_000).default(0).describe('Number of requested backups. One more requests a backup.'),
  keptUntil: z.iso
    .datetime(UTC_RULE)
    .max(32)
    .optional()
    .describe('Set when the database was deleted: time at which the backups are removed.'),
})

/** Backups and write-ahead log of a DedicatedDatabase in the repository, which may outlive the database. */
export const DatabaseArchive = defineKind({
  kind: 'DatabaseArchive',
  plural: 'databasearchives',
  shortNames: ['dba'],
  namespaced: true,
  description: 'Backups of a dedicated database.',
  spec: DatabaseArchiveSpec,
  status: z.object({
    ...commonStatus,
    restoreWindow: RestoreWindow.optional().describe('Newest interval whose every moment can be restored.'),
    restoreWindows: z
      .array(RestoreWindow)
      .max(RESTORE_WINDOWS_MAX)
      .optional()
      .describe(
        'All such intervals, oldest first. A gap in the write-ahead log ends an interval; the next backup begins another.',
      ),
    backups: z.array(ArchivedBackup).max(BACKUPS_MAX).optional().describe('Base backups, newest first.'),
    backupVersion: z.int().min(0).optional().describe('Number of the last requested backup that is done.'),
    lastVerifiedRestore: z.string().max(32).optional().describe('Time at which a restore drill last succeeded.'),
    drillReport: DrillReport.optional(),
    drillError: z.string().max(1024).optional().describe('Why the last restore drill failed. Absent after a success.'),
    archivedAt: z.string().max(32).optional().describe('Time up to which the write-ahead log is in the repository.'),
    storedBytes: z.int().min(0).optional().describe('Bytes in the repository.'),
  }),
  immutable: ['spec.databaseUid', 'spec.namespaceUid', 'spec.motor'],
  columns: [
    { name: 'Database', type: 'string', jsonPath: '.spec.database' },
    ...READY_COLUMNS,
    { name: 'Earliest', type: 'string', jsonPath: '.status.restoreWindow.earliest' },
    { name: 'Latest', type: 'string', jsonPath: '.status.restoreWindow.latest' },
    { name: 'Kept until', type: 'string', jsonPath: '.spec.keptUntil' },
    AGE_COLUMN,
  ],
})
export type DatabaseArchive = Resource<typeof DatabaseArchive>

/**
 * Whether an archive belongs to this Namespace. Kept backups may outlive their Namespace, whose name another tenant may have now: that tenant
 * must not read them.
 */
export const isArchiveOf = (
  { spec }: Pick<DatabaseArchive, 'spec'>,
  namespace: { readonly metadata: { readonly name: string; readonly uid: string } } | undefined,
): boolean => spec.namespace === namespace?.metadata.name && spec.namespaceUid === namespace.metadata.uid
