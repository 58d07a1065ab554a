import { z } from 'zod'

/** Documents that the operator and the agent of one database exchange in the repository, below `{uid of the database}/`. */

const Time = z.iso.datetime()
const Sentence = z.string().min(1).max(1024)

/** Content of `order.json`, which the operator writes. */
export const Order = z.object({
  /** Days for which every point in time stays restorable. */
  retentionDays: z.int().min(1).max(35),
  /** Number of backups that were requested so far. A value above {@link AgentState.backupVersion} requests one. */
  backupVersion: z.int().min(0),
})
export type Order = z.output<typeof Order>

/** Id of a base backup: its start in UTC and a random part, such as `20261125T183005Z-3f1c`. */
export const BackupId = z.string().regex(/^\d{8}T\d{6}Z-[0-9a-f]{4}$/)

export const Backup = z.object({
  id: BackupId,
  startedAt: Time,
  /** End of the backup, by the clock of the server: the first time that can be restored from it. */
  finishedAt: Time.nullable(),
  /** Size in the repository, in bytes. */
  sizeBytes: z.int().min(0),
  kind: z.enum(['scheduled', 'requested']),
  /** A backup is `succeeded` only when its files and the WAL that it needs are in the repository. */
  status: z.enum(['running', 'succeeded', 'failed']),
  /** Reason of a failed backup. */
  error: Sentence.optional(),
  /** Time of the last drill that restored this backup. */
  lastVerifiedRestore: Time.nullable(),
})
export type Backup = z.output<typeof Backup>

/** Points in time that can be restored, both ends included. */
export const RestoreWindow = z.object({ earliest: Time, latest: Time })
export type RestoreWindow = z.output<typeof RestoreWindow>

/** What a restore drill read in the scratch server. */
export const DrillReport = z.object({
  /** Tables of the tenant, all of whose rows were read. */
  tables: z.int().min(0),
  rows: z.int().min(0),
  /** Tables that had as many rows, and the same checksum, as those of the live server at that moment. */
  compared: z.int().min(0),
})
export type DrillReport = z.output<typeof DrillReport>

export const ProblemReason = {
  /** The repository does not answer, or rejects the credentials. */
  unavailable: 'RepositoryUnavailable',
  /** The repository has no space left. */
  full: 'RepositoryFull',
  /** An object in the repository is missing, or differs from its checksum. */
  corrupt: 'ArchiveCorrupt',
  backupFailed: 'BackupFailed',
  /** The server does not accept the agent's login. */
  serverUnreachable: 'ServerUnreachable',
} as const

export const Problem = z.object({
  reason: z.enum(ProblemReason),
  /** What failed, and what to do; without secrets. */
  message: Sentence,
})
export type Problem = z.output<typeof Problem>

/** Maximum number of intervals in {@link AgentState}. */
export const MAX_WINDOWS = 36

/** Maximum number of backups in {@link AgentState}. */
export const MAX_BACKUPS = 100

/** Content of `state.json`, which the agent writes after each change and at least every 30 s. Times are UTC with milliseconds. */
export const AgentState = z.object({
  /** Time of this state, by the agent's clock. The agent of a state that is older than two minutes counts as stopped. */
  at: Time,
  /** Newest first. */
  backups: z.array(Backup).max(MAX_BACKUPS),
  /** Computed from what is in the repository; null before the first backup. */
  restoreWindow: RestoreWindow.nullable(),
  /** All intervals that can be restored, oldest first: a gap in the log is between two of them. The last one is {@link restoreWindow}. */
  restoreWindows: z.array(RestoreWindow).max(MAX_WINDOWS).default([]),
  /** Highest {@link Order.backupVersion} that the agent has finished, whether the backup succeeded or failed. */
  backupVersion: z.int().min(0),
  /** Time of the last successful drill. */
  lastVerifiedRestore: Time.nullable(),
  /** Result of that drill. */
  drillReport: DrillReport.nullable().default(null),
  /** Failure of the last drill; null after a success. */
  drillError: Sentence.nullable(),
  /** Time up to which all committed transactions are in the repository, by the clock of the server. */
  archivedAt: Time.nullable(),
  /** Time of the last mark in the archive (docs/dedicated.md, "How point-in-time recovery works"). Nothing was committed between it and `archivedAt`. */
  markedAt: Time.nullable().default(null),
  /** Most severe of the current problems. */
  problem: Problem.nullable(),
  /** Size of all objects of the database in the repository, in bytes. */
  storedBytes: z.int().min(0),
})
export type AgentState = z.output<typeof AgentState>

/** Keys of the documents, below the prefix of the database. */
export const ORDER_KEY = 'order.json'
export const STATE_KEY = 'state.json'
