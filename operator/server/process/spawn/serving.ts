import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { readdir } from 'node:fs/promises'
import { hasCode } from '../../../../shared/errors.ts'
import { type ServerPaths, blanksIn, serverPaths, readRecord, type Record } from '../files/paths.ts'
import { holdersOf, isFirstInNamespace, isSame, type ProcessId, sendSignal, waitForExit } from './proc.ts'
import type { EngineProgram } from '../programs/program.ts'

const RETRY_MS = 50
/** Time for which a removal or stop waits for another process that holds the server's lock. */
const SOON_MS = 500

/**
 * Acquires the lock to start, stop or remove the server of a directory, across processes. The lock is a socket in Linux' abstract namespace
 * (unix(7)): binding is exclusive, and the kernel releases it when its holder ends, so a lock is never stale.
 */
export async function tryLock(directory: string): Promise<AsyncDisposable | undefined> {
  const name = createHash('sha256').update(directory).digest('hex')
  const server = createServer((socket) => socket.destroy())
  server.listen(`\0mooring-server-${name}`)
  server.unref()
  try {
    await once(server, 'listening')
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE')) return undefined
    throw error
  }
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

/** Waits for the lock, runs `work`, and releases it. @throws the signal's reason when it aborts before the lock is acquired */
export async function withLock<T>(directory: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let held = await tryLock(directory)
  while (!held) {
    await delay(RETRY_MS, undefined, { signal })
    held = await tryLock(directory)
  }
  try {
    return await work()
  } finally {
    await held[Symbol.asyncDispose]()
  }
}

/** As {@link withLock}, for work that is repeated when it fails. @throws DOMException `TimeoutError` when the lock is held for 500 ms */
export function withLockSoon<T>(directory: string, work: () => Promise<T>): Promise<T> {
  return withLock(directory, AbortSignal.timeout(SOON_MS), work)
}

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
/** Steps for a server with a statement that nothing ends: its other sessions end properly, and then the server. */
export const RESTART: readonly Step[] = [
  { signal: 'fast', ms: 1500 },
  { signal: 'immediate', ms: 1500 },
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
