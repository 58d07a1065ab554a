import { readdir, readFile, stat, constants, open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../../../shared/errors.ts'

/** Unique identity of a process: pids are reused, pairs of pid and start time are not (proc(5)). */
export interface ProcessId {
  readonly pid: number
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat. */
  readonly startTime: string
}

/**
 * Start time from the text of /proc/<pid>/stat; undefined for a zombie, which has ended. A zombie with further threads has not: these still
 * hold its ports and locks.
 */
export function parseStat(text: string): string | undefined {
  // The command name is in brackets and may contain anything, brackets and spaces included.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const hasThreads = Number(fields[17]) > 1
  return (fields[0] === 'Z' && !hasThreads) || fields[0] === 'X' ? undefined : fields[19]
}

/** Process that has this pid now, or undefined. */
export async function processOf(pid: number): Promise<ProcessId | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const startTime = parseStat(text)
  return startTime === undefined ? undefined : { pid, startTime }
}

/** Interval of polling a launcher until the engine runs. */
const LAUNCH_POLL_MS = 5

/**
 * Returns the engine that a child of ours is or becomes: the child itself or, when the child is the launcher of a process namespace,
 * process 1 of that namespace. @returns undefined when it has ended
 */
export async function mainProcess(pid: number, exited: Promise<unknown>): Promise<ProcessId | undefined> {
  const hasExited = exited.then(() => true)
  for (;;) {
    // A launcher that does not fork becomes the engine itself.
    const isLauncher = /^unshare\0.*\0--fork\0/.test(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
    const inner = isLauncher ? await onlyChild(pid) : pid
    if (inner !== undefined) return processOf(inner)
    if (await Promise.race([hasExited, delay(LAUNCH_POLL_MS, false)])) return undefined
  }
}

/** Only child of a process (proc(5), "/proc/pid/task/tid/children"). */
async function onlyChild(pid: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const child = Number(children.trim().split(' ')[0])
  return child > 0 ? child : undefined
}

/** Whether a process is the first of a process namespace below ours (proc(5), "NSpid"). */
export async function isFirstInNamespace({ pid }: ProcessId): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const pids = (/^NSpid:\t(.*)$/m.exec(status)?.[1] ?? '').split('\t')
  return pids.length > 1 && pids.at(-1) === '1'
}

export const isSame = (a: ProcessId, b: ProcessId): boolean => a.pid === b.pid && a.startTime === b.startTime

export async function isAlive(id: ProcessId): Promise<boolean> {
  const now = await processOf(id.pid)
  return now !== undefined && isSame(now, id)
}

/** Signals exactly this process. @returns false when it has ended; another process that reused its pid is never signalled */
export async function sendSignal(id: ProcessId, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(id))) return false
  try {
    return process.kill(id.pid, signal)
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false
    throw error
  }
}

/** Resolves when the process has ended, polled every `every` ms; never when `signal` aborts before. */
export async function watchExit(id: ProcessId, every: number, signal: AbortSignal): Promise<void> {
  while (await isAlive(id)) await delay(every, undefined, { ref: false, signal })
}

/** Waits until all processes have ended. @returns false after `ms` */
export async function waitForExit(ids: readonly ProcessId[], ms: number): Promise<boolean> {
  const end = performance.now() + ms
  for (;;) {
    const alive = await Promise.all(ids.map(isAlive))
    if (!alive.includes(true)) return true
    if (performance.now() >= end) return false
    await delay(10)
  }
}

/** File descriptor by which an engine and its descendants hold their data directory. */
export const DATA_FD = 3

/**
 * Returns all processes that hold `directory` as descriptor {@link DATA_FD}. The descriptor identifies a process as an engine of that
 * directory, from its first instruction and through every fork, whatever the files in it say.
 */
export async function holdersOf(directory: string): Promise<readonly ProcessId[]> {
  const desired = await stat(directory).catch(() => undefined)
  if (!desired) return []
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const found = await Promise.all(
    pids.map(async (pid) => {
      const held = await stat(`/proc/${pid}/fd/${DATA_FD}`).catch(() => undefined)
      return held?.ino === desired.ino && held.dev === desired.dev ? processOf(Number(pid)) : undefined
    }),
  )
  return found.filter((id) => id !== undefined)
}

/** Returns the pid in the first line of a file; undefined when there is none. */
export async function readPid(path: string): Promise<number | undefined> {
  try {
    // The engine's user owns the directory and may have put a link or a pipe there.
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0)
    const pid = Number(buffer.toString('latin1', 0, bytesRead).split('\n')[0])
    return Number.isInteger(pid) && pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}
