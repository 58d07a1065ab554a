import type { AgentState, Order } from '../../backup/agent-state.ts'
import { ArchiveReason, type DatabaseArchive } from '../../crds/database-archive.ts'
import { FINALIZER } from '../../crds/names.ts'
import type { StatusOf } from '../../crds/kind.ts'
import { type Decision, notReady, ready } from '../../store/conditions.ts'

/** Documents in the repository. */
export interface Documents {
  /** Undefined when the agent has written none yet, or one of another version. */
  readonly state: AgentState | undefined
  readonly order: Order | undefined
}

/** Observed state that a decision may depend on, read once by reconciler.ts. */
export interface Observed {
  readonly archive: DatabaseArchive
  /** Whether a DedicatedDatabase has the archive. */
  readonly hasDatabase: boolean
  /** Documents, or why they cannot be read. Not read while the archive is being deleted. */
  readonly documents: Documents | { readonly error: string } | undefined
  /** Whether the Namespace of the archive is being deleted, which says nothing about backups. */
  readonly isNamespaceGoing?: boolean | undefined
  readonly now: Date
}

/** One action of a plan. A crash after any action is harmless: the next reconcile does what is missing. */
export type Action =
  | 'add-finalizer'
  /** Writes the order of the agent: the retention and the number of requested backups. */
  | 'order'
  /** Begins the retention of backups without a database. */
  | 'keep'
  /** Deletes the archive, whose retention has ended. */
  | 'delete'
  /** Removes all objects from the repository, and checks that none is left. */
  | 'remove-objects'
  /** Leaves the objects in the repository. */
  | 'leave-objects'
  | 'release'

export type Fields = Partial<StatusOf<typeof DatabaseArchive>>

export interface Plan {
  readonly actions: readonly Action[]
  /** Undefined when there is no status to write. */
  readonly decision: Decision | undefined
  readonly fields: Fields
  readonly requeueAfterMs?: number | undefined
}

/** Interval in ms at which the state of an agent is read. */
const STEADY_MS = 10_000
/** Interval in ms at which it is read while a backup is expected or the repository is unavailable. */
const UNSETTLED_MS = 2_000
/** Age in ms at which the agent of a state counts as stopped: an agent writes at least every 30 s. */
const SILENT_MS = 120_000

/** Decides what a DatabaseArchive needs. Pure: each branch is a row in plan.test.ts. */
export function planArchive(observed: Observed): Plan {
  const { finalizers = [], deletionTimestamp } = observed.archive.metadata
  if (deletionTimestamp !== undefined) return planDeletion(finalizers, observed)
  const plan = planLiving(observed)
  return finalizers.includes(FINALIZER) ? plan : { ...plan, actions: ['add-finalizer', ...plan.actions] }
}

function planLiving({ archive, documents, hasDatabase, now }: Observed): Plan {
  const end = endOfRetention(archive, hasDatabase, now)
  if (end) return { actions: [end], decision: undefined, fields: {} }
  if (!documents || 'error' in documents) {
    const decision = notReady(ArchiveReason.RepositoryUnavailable, documents?.error ?? 'the repository was not read')
    return { actions: [], decision, fields: {}, requeueAfterMs: UNSETTLED_MS }
  }
  const { state, order } = documents
  const decision = decisionOf(archive, state, now)
  return {
    actions: isOrdered(archive, order) ? [] : ['order'],
    decision,
    fields: fieldsOf(state),
    requeueAfterMs: isSettled(archive, state, decision) ? STEADY_MS : UNSETTLED_MS,
  }
}

/** Begins the retention of an archive without a database, and deletes an archive at the end of it. */
function endOfRetention({ spec: { keptUntil } }: DatabaseArchive, hasDatabase: boolean, now: Date): Action | undefined {
  if (keptUntil === undefined) return hasDatabase ? undefined : 'keep'
  return Date.parse(keptUntil) <= now.getTime() ? 'delete' : undefined
}

function planDeletion(finalizers: readonly string[], { isNamespaceGoing }: Observed): Plan {
  if (!finalizers.includes(FINALIZER)) return { actions: [], decision: undefined, fields: {} }
  const objects = isNamespaceGoing ? 'leave-objects' : 'remove-objects'
  return { actions: [objects, 'release'], decision: undefined, fields: {} }
}

/** Returns the desired order of the archive's agent. */
export const orderOf = ({ spec }: Pick<DatabaseArchive, 'spec'>): Order => ({
  retentionDays: spec.retentionDays,
  backupVersion: spec.backupVersion,
})

/** Whether the agent has its desired order. A kept archive has no agent any more. */
function isOrdered(archive: DatabaseArchive, present: Order | undefined): boolean {
  if (archive.spec.keptUntil !== undefined) return true
  const { retentionDays, backupVersion } = orderOf(archive)
  return present?.retentionDays === retentionDays && present.backupVersion === backupVersion
}

function decisionOf({ spec, metadata }: DatabaseArchive, state: AgentState | undefined, now: Date): Decision {
  if (spec.keptUntil !== undefined) {
    return ready(ArchiveReason.Kept, `the database was deleted; its backups are kept until ${spec.keptUntil}`)
  }
  const since = state?.at ?? metadata.creationTimestamp
  if (now.getTime() - Date.parse(since) > SILENT_MS) {
    return notReady(ArchiveReason.AgentSilent, `the agent beside the database server has not reported since ${since}`)
  }
  return reportOf(state)
}

function reportOf(state: AgentState | undefined): Decision {
  if (state?.problem) return notReady(state.problem.reason, state.problem.message)
  const window = state?.restoreWindow
  if (!window) return notReady(ArchiveReason.FirstBackup, 'the first backup is not complete yet')
  return ready(ArchiveReason.Archiving, `any moment from ${window.earliest} to ${window.latest} can be restored`)
}

function isSettled({ spec }: DatabaseArchive, state: AgentState | undefined, { status }: Decision): boolean {
  if (spec.keptUntil !== undefined) return true
  const isDone = state?.backupVersion === spec.backupVersion && state.backups.every((backup) => backup.status !== 'running')
  return status === 'True' && isDone
}

/** Returns the fields of the status that an agent's state has. Without a state, the present fields stay. */
function fieldsOf(state: AgentState | undefined): Fields {
  if (!state) return {}
  const {
    backups,
    restoreWindow,
    restoreWindows,
    lastVerifiedRestore,
    drillReport,
    drillError,
    archivedAt,
    backupVersion,
    storedBytes,
  } = state
  return {
    backupVersion,
    storedBytes,
    restoreWindows,
    restoreWindow: restoreWindow ?? undefined,
    lastVerifiedRestore: lastVerifiedRestore ?? undefined,
    drillReport: drillReport ?? undefined,
    drillError: drillError ?? undefined,
    archivedAt: archivedAt ?? undefined,
    backups: backups.map(({ finishedAt, lastVerifiedRestore: verified, ...backup }) => ({
      ...backup,
      ...(finishedAt !== null && { finishedAt }),
      ...(verified !== null && { lastVerifiedRestore: verified }),
    })),
  }
}
