import type { ServerPaths } from '../files/paths.ts'
import { holdersOf, isFirstInNamespace, isSame, type ProcessId } from './proc.ts'
import type { EngineProgram } from '../programs/program.ts'
import { readRecord, type Record } from '../files/record.ts'

export interface Found {
  /** Main process of the server, if it is alive. */
  readonly main: ProcessId | undefined
  /** Main process and its descendants, or those that are left. */
  readonly holders: readonly ProcessId[]
  readonly record: Record | undefined
}

/**
 * Finds the engine of a data directory, whichever process started it: by our record or, when we were killed between its start and the
 * record, by the engine's pid file. Neither counts unless that process holds the directory.
 */
export async function findServing(paths: ServerPaths, program: EngineProgram): Promise<Found> {
  const [holders, record, pid] = await Promise.all([holdersOf(paths.data), readRecord(paths), program.mainPid(paths.data)])
  const recorded = record?.process
  const main =
    holders.find((holder) => recorded !== undefined && isSame(holder, recorded)) ??
    (await firstInNamespace(holders)) ??
    holders.find((holder) => holder.pid === pid)
  return { main, holders, record }
}

/** Main process of a confined server, whose pid file has the pid inside its namespace. */
async function firstInNamespace(holders: readonly ProcessId[]): Promise<ProcessId | undefined> {
  for (const holder of holders) if (await isFirstInNamespace(holder)) return holder
  return undefined
}
