import { readdir, readFile } from 'node:fs/promises'

/** Ticks a second in /proc/…/stat (sysconf(_SC_CLK_TCK)): 100 on all supported platforms. */
const TICKS = 100
const KIB_PER_MB = 1_000_000 / 1_024

/** Fields of /proc/{pid}/stat from the third on: the second, the program's name, may hold anything (proc(5)). */
const fieldsOf = (text: string): readonly number[] =>
  text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)

const stat = async (pid: number): Promise<readonly number[]> => fieldsOf(await readFile(`/proc/${pid}/stat`, 'utf8'))

/** Returns the processor time of a process in seconds, with its threads and without its children, from /proc/{pid}/stat. */
export function cpuSecondsIn(text: string): number {
  const fields = fieldsOf(text)
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) / TICKS
}

export async function cpuSeconds(pid: number): Promise<number> {
  return cpuSecondsIn(await readFile(`/proc/${pid}/stat`, 'utf8'))
}

/**
 * Returns the processor time of all descendants in seconds, including ended ones, whose time was added to their parents'
 * (`cutime`, `cstime`).
 */
export async function descendantsCpuSeconds(pid: number): Promise<number> {
  const used = await Promise.all(
    (await descendants(pid)).map(async (below) => {
      const fields = await stat(below).catch(() => [])
      return fields.slice(11, 15).reduce((sum, ticks) => sum + ticks, 0) / TICKS
    }),
  )
  return used.reduce((sum, seconds) => sum + seconds, 0)
}

/** Returns the resident memory in MB (10⁶ bytes); `Pss` divides shared memory among its processes. */
export async function memoryMb(pid: number, kind: 'Rss' | 'Pss'): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Number(new RegExp(`^${kind}: +(\\d+) kB`, 'm').exec(text)?.[1]) / KIB_PER_MB
}

/** Returns all descendants of `pid`, without itself. */
export async function descendants(pid: number): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const parents = new Map<number, number>()
  for (const other of pids) {
    // A process that ended meanwhile has no parent.
    const fields = await stat(other).catch(() => [])
    parents.set(other, fields[1] ?? 0)
  }
  const isBelow = (other: number): boolean => {
    const parent = parents.get(other)
    return parent === pid || (parent !== undefined && parent > 1 && isBelow(parent))
  }
  return pids.filter(isBelow)
}
