import { type AgentState, type Backup, type DrillReport, MAX_BACKUPS, MAX_WINDOWS, type Problem } from './agent-state.ts'
import type { Catalog } from './postgresql/catalog/catalog.ts'
import type { Manifest } from './postgresql/catalog/manifest.ts'
import { intervalsOf, type Quiet, windowsOf, withQuiet } from './postgresql/catalog/restorable.ts'

/** State of an agent that no listing of the repository shows. It begins with the last state that an earlier agent wrote. */
export interface Memory {
  /** Backups that failed, and the one that runs; newest first. */
  attempts: readonly Backup[]
  /** Time of the last successful drill of a backup, by its id. */
  verified: ReadonlyMap<string, string>
  backupVersion: number
  lastVerifiedRestore: string | null
  drillReport: DrillReport | null
  drillError: string | null
}

/** Maximum number of failed backups in a state. */
const MAX_FAILED = 20
const KILLED = 'the agent stopped during the backup; the next agent makes a new one'

const NOTHING = { backups: [], backupVersion: 0, lastVerifiedRestore: null, drillReport: null, drillError: null } as const

export function memoryFrom(state: AgentState | undefined): Memory {
  const { backups, backupVersion, lastVerifiedRestore, drillReport, drillError } = state ?? NOTHING
  const attempts = backups.filter(({ status }) => status !== 'succeeded')
  return {
    attempts: attempts.map((backup) => (backup.status === 'running' ? { ...backup, status: 'failed', error: KILLED } : backup)),
    verified: new Map(backups.flatMap(({ id, lastVerifiedRestore: at }) => (at === null ? [] : [[id, at] as const]))),
    backupVersion,
    lastVerifiedRestore,
    drillReport,
    drillError,
  }
}

/** Replaces the memory by that of an earlier agent. */
export function remember(memory: Memory, state: AgentState | undefined): void {
  Object.assign(memory, memoryFrom(state))
}

export interface Observed {
  readonly memory: Memory
  readonly catalog: Catalog | undefined
  readonly quiet: Quiet | undefined
  readonly problem: Problem | null
  /** Present time in ms. */
  readonly now: number
}

/** Computes the state of an agent. */
export function stateOf({ memory, catalog, quiet, problem, now }: Observed): AgentState {
  const archived = withQuiet(catalog?.archived() ?? { bases: [], wal: new Map(), quiet: [] }, quiet)
  const windows = windowsOf(intervalsOf(archived)).slice(-MAX_WINDOWS)
  return {
    at: new Date(now).toISOString(),
    backups: backupsOf(memory, catalog, archived.bases),
    restoreWindow: windows.at(-1) ?? null,
    restoreWindows: [...windows],
    backupVersion: memory.backupVersion,
    lastVerifiedRestore: memory.lastVerifiedRestore,
    drillReport: memory.drillReport,
    drillError: memory.drillError,
    archivedAt: quiet ? new Date(quiet.until).toISOString() : null,
    markedAt: quiet ? new Date(quiet.markedAt).toISOString() : null,
    problem,
    storedBytes: catalog?.storedBytes() ?? 0,
  }
}

function backupsOf(memory: Memory, catalog: Catalog | undefined, complete: readonly Manifest[]): Backup[] {
  const usable = new Set(complete.map(({ id }) => id))
  const made = (catalog?.manifests() ?? []).map((manifest): Backup => {
    const { id, startedAt, finishedAt, kind } = manifest
    const lastVerifiedRestore = memory.verified.get(id) ?? null
    const common = { id, startedAt, finishedAt, kind, sizeBytes: catalog?.sizeOf(id) ?? 0, lastVerifiedRestore }
    if (usable.has(id)) return { ...common, status: 'succeeded' }
    return { ...common, status: 'failed', error: 'an object of the backup is missing or corrupt' }
  })
  const ids = new Set(made.map(({ id }) => id))
  const others = memory.attempts.filter(({ id }) => !ids.has(id)).slice(0, MAX_FAILED)
  // By the start in milliseconds: the ids of two backups can have the same second.
  return [...made, ...others].sort((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)).slice(0, MAX_BACKUPS)
}
