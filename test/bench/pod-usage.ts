import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Kubernetes } from '../cluster/setup/kubectl.ts'
import { cpuSecondsIn } from './process-usage.ts'

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
