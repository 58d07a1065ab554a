import { readdir, readFile } from 'node:fs/promises'
import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Kubernetes } from '../cluster/setup/commands.ts'

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
function cpuSecondsIn(text: string): number {
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

/** Resource usage of the single process of a pod. */
export interface PodUsage {
  readonly pod: string
  readonly cpuSeconds: number
  /** Resident memory in MB (10⁶ bytes). */
  readonly memoryMb: number
}

export type Component = 'operator' | 'apiserver' | 'edge'

const IN_SYSTEM = ['--namespace', SYSTEM_NAMESPACE]
/** Files of the pod's single process, the first in its namespace. */
const LOOK = `for (const file of ['stat', 'status']) console.log(require('node:fs').readFileSync('/proc/1/' + file, 'utf8'))`

/** Reads /proc in each pod of a component. */
export async function podUsage({ kubectl }: Kubernetes, component: Component): Promise<readonly PodUsage[]> {
  // The operator creates edges, the chart the other components.
  const selector = component === 'edge' ? 'app.kubernetes.io/name=mooring-edge' : `app.kubernetes.io/component=${component}`
  const wanted = ['--selector', selector, '--output', 'name']
  const pods = (await kubectl(['get', 'pods', ...IN_SYSTEM, ...wanted])).split('\n')
  return Promise.all(
    pods.map(async (pod) => {
      const text = await kubectl(['exec', pod, ...IN_SYSTEM, '--', 'node', '-e', LOOK])
      const kib = z.coerce.number().parse(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1])
      return { pod, cpuSeconds: cpuSecondsIn(text.split('\n')[0] ?? ''), memoryMb: (kib * 1_024) / 1e6 }
    }),
  )
}

export const mostMemory = (usage: readonly PodUsage[]): number => Math.max(...usage.map(({ memoryMb }) => memoryMb))
