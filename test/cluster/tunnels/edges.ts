import { expect, vi } from 'vitest'
import { mainProcess } from '../faults/node-processes.ts'
import type { Kubernetes } from '../setup/kubectl.ts'

/** Pods start slowly where everything of a cluster shares two cores. */
export const SOON = { timeout: 100_000, interval: 200 }
const REPLICAS = 2
const IN_SYSTEM = ['--namespace', 'mooring-system']
const OF_DEFAULT = ['--selector', 'mooring.dev/endpoint=default']

/** The edges of the endpoint `default`. */
export interface Edges {
  /** Addresses of those that are ready, by the names of their pods. */
  readonly ready: () => Promise<ReadonlyMap<string, string>>
  /** Resolves when as many are ready as there should be, and the endpoint says so. */
  readonly settled: () => Promise<void>
  /** Process id, on this machine, of the one in that pod. */
  process(pod: string): Promise<number>
}

export function edgesOf({ kubectl }: Pick<Kubernetes, 'kubectl'>): Edges {
  async function ready(): Promise<ReadonlyMap<string, string>> {
    const each = '{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}={.status.podIP} {end}'
    const text = await kubectl(['get', 'pods', ...IN_SYSTEM, ...OF_DEFAULT, '--output', `jsonpath=${each}`])
    return new Map(
      text
        .split(' ')
        .filter(Boolean)
        .map((pair) => pair.split('=') as [string, string]),
    )
  }

  return {
    ready,
    settled: () =>
      vi.waitFor(async () => {
        expect((await ready()).size).toBe(REPLICAS)
        const said = await kubectl(['get', 'tunnelendpoint', 'default', '--output', 'jsonpath={.status.readyReplicas}'])
        expect(said).toBe(String(REPLICAS))
      }, SOON),
    async process(pod) {
      const id = 'jsonpath={.status.containerStatuses[0].containerID}'
      return mainProcess(await kubectl(['get', 'pod', pod, ...IN_SYSTEM, '--output', id]))
    },
  }
}
