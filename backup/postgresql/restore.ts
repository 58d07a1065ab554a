import { mkdir } from 'node:fs/promises'
import { MooringError } from '../../shared/errors.ts'
import type { Repository } from '../repository/port.ts'
import { loadCatalog, loadState, quietOf } from './catalog/load.ts'
import { ARCHIVE_CORRUPT, type ReadDeps } from './catalog/read-object.ts'
import { addRecovery, markComplete, prepareDirectory, syncFiles } from './restored-directory.ts'
import { intervalsOf, planRestore, type RestorePlan, windowsOf, withQuiet } from './catalog/restorable.ts'
import type { Catalog } from './catalog/catalog.ts'
import { checkSpace, NO_SPACE } from './space.ts'
import { fetchParts, fetchWal, walFor } from './fetch.ts'

export interface RestoreRequest {
  readonly repository: Repository
  /** Uid of the database that was backed up. */
  readonly prefix: string
  /** Time to restore to, whole milliseconds. Transactions that were committed at or before it are included. */
  readonly time: Date
  /**
   * Data directory to fill: absent, empty, or left half-made by an earlier call. A half-made one is emptied. This process owns it; the caller
   * changes the owner afterwards.
   */
  readonly into: string
  /** Position of the log, not after `time`, at which recovery stops instead: a drill compares the server with one as it was there. */
  readonly position?: string | undefined
  readonly signal: AbortSignal
  readonly onProgress?: ((progress: RestoreProgress) => void) | undefined
}

/** Share of the free space that a restore may take. */
const MAX_SHARE = 0.95

export interface RestoreProgress {
  /** Size in the repository of the objects that were read. */
  readonly doneBytes: number
  /** Size in the repository of all objects to read. */
  readonly totalBytes: number
}

export const RestoreCode = {
  /** The time is outside of the restorable window; the message has the window. */
  outsideWindow: 'outside_restore_window',
  /** An object in the repository differs from its checksum, or is missing. It no longer counts for the window. */
  corrupt: ARCHIVE_CORRUPT,
  /** The directory has files that this restore did not make. */
  notEmpty: 'directory_not_empty',
  /** The volume has too little space. */
  noSpace: NO_SPACE,
} as const

export interface Restored {
  /** Time to which the server recovers when it is started. The server is promoted then. */
  readonly recoveredTo: Date
  /** Base backup that was used. */
  readonly backupId: string
}

/**
 * Fills a data directory from the repository: the files of the newest backup before the time, the WAL that follows, and recovery settings.
 * Does not start the server. At its start the server recovers to the time, and then accepts changes on a new timeline. A call after one that
 * was killed begins again; a call after one that succeeded returns the same result, whatever the server did meanwhile.
 * @throws MooringError with a code of {@link RestoreCode}, or of the repository
 */
export async function restore(request: RestoreRequest): Promise<Restored> {
  const { repository, prefix, time, into, position, signal } = request
  const deps = { repository, prefix, signal }
  await mkdir(into, { recursive: true, mode: 0o700 })
  const earlier = await prepareDirectory(into, { prefix, time: time.toISOString() })
  if (earlier) return { recoveredTo: new Date(earlier.recoveredTo), backupId: earlier.backupId }
  const { plan, catalog } = await choose(deps, time)
  await checkSpace(into, plan, MAX_SHARE)
  const wal = walFor(catalog, plan)
  const progress = progressOf(request, plan, wal)
  await fetchParts(deps, { parts: plan.base.parts, into, onRead: progress })
  await fetchWal(deps, { wal, into, onRead: progress })
  const recoveredTo = new Date(plan.target)
  await addRecovery(into, position === undefined ? { time: recoveredTo } : { position })
  await syncFiles(into)
  await markComplete(into, { prefix, time: time.toISOString(), recoveredTo: recoveredTo.toISOString(), backupId: plan.base.id })
  return { recoveredTo, backupId: plan.base.id }
}

interface Choice {
  readonly plan: RestorePlan
  readonly catalog: Catalog
}

async function choose(deps: ReadDeps, time: Date): Promise<Choice> {
  const [catalog, state] = [await loadCatalog(deps), await loadState(deps)]
  const intervals = intervalsOf(withQuiet(catalog.archived(), quietOf(state)))
  const plan = planRestore(intervals, time.getTime())
  if (plan) return { plan, catalog }
  const windows = windowsOf(intervals).map(({ earliest, latest }) => `${earliest} to ${latest}`)
  const bounds = windows.length > 0 ? `choose one from ${windows.join(', or ')}` : 'there is no complete backup'
  throw new MooringError(RestoreCode.outsideWindow, `${time.toISOString()} cannot be restored: ${bounds}`)
}

function progressOf({ onProgress }: RestoreRequest, { base }: RestorePlan, wal: readonly { sizeBytes: number }[]) {
  const totalBytes = [...base.parts, ...wal].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  let doneBytes = 0
  return (bytes: number): void => {
    doneBytes += bytes
    onProgress?.({ doneBytes, totalBytes })
  }
}
