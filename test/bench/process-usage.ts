import { readdir, readFile } from 'node:fs/promises'

/** Kernel ticks of /proc/…/stat a second (sysconf(_SC_CLK_TCK), 100 on every Linux of our platforms). */
const TICKS = 100
const KIB_PER_MB = 1_000_000 / 1_024

/** Fields of /proc/{pid}/stat from the third on: the second, the program's name, may hold anything (proc(5)). */
const fieldsOf = (text: string): readonly number[] =>
  text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)

const stat = async (pid: number): Promise<readonly number[]> => fieldsOf(await readFile(`/proc/${pid}/stat`, 'utf8'))

/** Seconds of processor time that the process has used, its threads included and its children not, by what /proc/{pid}/stat says. */
export function cpuSecondsIn(text: string): number {
  const fields = fieldsOf(text)
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) / TICKS
}

export async function cpuSeconds(pid: number): Promise<number> {
  return cpuSecondsIn(await readFile(`/proc/${pid}/stat`, 'utf8'))
}

/** The same of all its descendants, also of those that have ended: what these used was added to their parents' (`cutime`, `cstime`). */
export async function descendantsCpuSeconds(pid: number): Promise<number> {
  const used = await Promise.all(
    (await descendants(pid)).map(async (below) => {
      const fields = await stat(below).catch(() => [])
      return fields.slice(11, 15).reduce((sum, ticks) => sum + ticks, 0) / TICKS
    }),
  )
  return used.reduce((sum, seconds) => sum + seconds, 0)
}

/** Resident memory in MB (10⁶ bytes); `Pss` shares out what several processes have in common. */
export async function memoryMb(pid: number, kind: 'Rss' | 'Pss'): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Number(new RegExp(`^${kind}: +(\\d+) kB`, 'm').exec(text)?.[1]) / KIB_PER_MB
}

/** Every process that descends from `pid`, but not itself. */
export async function descendants(pid: number): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const parents = new Map<number, number>()
  for (const other of pids) {
    // One that ended while we looked has no parent.
    const fields = await stat(other).catch(() => [])
    parents.set(other, fields[1] ?? 0)
  }
  const isBelow = (other: number): boolean => {
    const parent = parents.get(other)
    return parent === pid || (parent !== undefined && parent > 1 && isBelow(parent))
  }
  return pids.filter(isBelow)
}
