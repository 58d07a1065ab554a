import type { ServerPaths } from '../files/paths.ts'
import { holdersOf, isFirstInNamespace, isSame, type ProcessId } from './proc.ts'
import type { EngineProgram } from '../programs/program.ts'
import { readRecord, type Record } from '../files/record.ts'

export interface Found {
  /** The server's main process, if it is alive. */
  readonly main: ProcessId | undefined
  /** It and whatever it forked, or what is left of that. */
  readonly holders: readonly ProcessId[]
  readonly record: Record | undefined
}

/**
 * Looks for the engine of a data directory, whoever started it. Our record names it; when we were killed between its start and
 * the record, the engine's own pid file does. Neither counts unless that very process holds the directory.
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

/** The main process of a confined server: its own pid file has the pid that it has in there. */
async function firstInNamespace(holders: readonly ProcessId[]): Promise<ProcessId | undefined> {
  for (const holder of holders) if (await isFirstInNamespace(holder)) return holder
  return undefined
}
