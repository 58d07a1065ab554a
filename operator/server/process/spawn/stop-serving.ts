import { readdir } from 'node:fs/promises'
import { hasCode } from '../error-code.ts'
import { findServing } from './find-serving.ts'
import { blanksIn, type ServerPaths, serverPaths } from '../files/paths.ts'
import { holdersOf, sendSignal, waitForExit } from './proc.ts'
import type { EngineProgram } from '../programs/program.ts'

interface Step {
  readonly signal: 'fast' | 'immediate'
  /** Time limit of the step. */
  readonly ms: number
}

/** Steps of a clean shutdown; with the final kill, at most 5 s. */
export const CLEAN_SHUTDOWN: readonly Step[] = [
  { signal: 'fast', ms: 4000 },
  { signal: 'immediate', ms: 400 },
]
/** Steps for a server whose data will be removed. */
export const IMMEDIATE_SHUTDOWN: readonly Step[] = [{ signal: 'immediate', ms: 5000 }]

/** Time for children that end by themselves, such as the logger. */
const GRACE_MS = 200
const KILL_MS = 1000

/** Ends every process of a server, however it was started. @returns false when a process is left */
export async function stopServing(paths: ServerPaths, program: EngineProgram, steps: readonly Step[]): Promise<boolean> {
  const { main, holders } = await findServing(paths, program)
  for (const { signal, ms } of steps) {
    if (!main || !(await sendSignal(main, program.signals[signal]))) break
    if (await waitForExit([main], ms)) break
  }
  if (main) await waitForExit(holders, GRACE_MS)
  const killed = await Promise.all([killHolders(paths.data), killHolders(paths.unfinished)])
  return !killed.includes(false)
}

/** Kills every engine whose data is below `directory`, unfinished ones included, whatever the records say. */
export async function killServers(directory: string): Promise<void> {
  const all = [...(await pathsIn(directory)), ...(await pathsIn(blanksIn(directory)))]
  await Promise.all(all.flatMap(({ data, unfinished }) => [data, unfinished]).map(killHolders))
}

async function pathsIn(directory: string): Promise<readonly ServerPaths[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })
  return names.map((name) => serverPaths(directory, name))
}

/** Kills the processes that hold a directory, and those that they forked meanwhile. */
async function killHolders(directory: string): Promise<boolean> {
  for (let round = 0; round < 3; round++) {
    const holders = await holdersOf(directory)
    if (holders.length === 0) return true
    await Promise.all(holders.map((holder) => sendSignal(holder, 'SIGKILL')))
    await waitForExit(holders, KILL_MS)
  }
  return (await holdersOf(directory)).length === 0
}
