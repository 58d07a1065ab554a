import type { V1PodList } from '@kubernetes/client-node'
import { expect, vi } from 'vitest'
import { mainProcess } from '../faults/node-processes.ts'
import type { Kubernetes } from '../setup/kubectl.ts'

/** Pods start slowly where everything of a cluster shares two cores. */
export const SOON = { timeout: 100_000, interval: 200 }
const REPLICAS = 2
const IN_SYSTEM = ['--namespace', 'mooring-system']
const DEPLOYMENT = ['deployment', 'edge-default', ...IN_SYSTEM]
const OF_DEFAULT = ['--selector', 'mooring.dev/endpoint=default']

/** The edges of the endpoint `default`. */
export interface Edges {
  /** Addresses of those that are ready and do not end, by the names of their pods. */
  readonly ready: () => Promise<ReadonlyMap<string, string>>
  /** Resolves when there are as many as there should be, all of them ready, and the endpoint says so. */
  readonly settled: () => Promise<void>
  /** Process id, on this machine, of the one in that pod. */
  process(pod: string): Promise<number>
}

export function edgesOf({ kubectl }: Pick<Kubernetes, 'kubectl'>): Edges {
  /** Names of all pods with their addresses, which those that are not ready or that end do not have. */
  async function pods(): Promise<ReadonlyMap<string, string | undefined>> {
    const { items } = JSON.parse(await kubectl(['get', 'pods', ...IN_SYSTEM, ...OF_DEFAULT, '--output', 'json'])) as V1PodList
    return new Map(
      items.map(({ metadata, status }) => {
        const serves = status?.containerStatuses?.[0]?.ready === true && metadata?.deletionTimestamp === undefined
        return [metadata?.name ?? '', serves ? status.podIP : undefined]
      }),
    )
  }

  return {
    async ready() {
      return new Map([...(await pods())].flatMap(([name, address]) => (address === undefined ? [] : [[name, address]])))
    },
    settled: () =>
      vi.waitFor(async () => {
        // What a change by hand began, and its end, may be under way: pods that start and pods that end count.
        const addresses = [...(await pods()).values()]
        expect([addresses.length, addresses.includes(undefined)]).toEqual([REPLICAS, false])
        const seen = '{.metadata.generation} {.status.observedGeneration}'
        const [now, observed] = (await kubectl(['get', ...DEPLOYMENT, '--output', `jsonpath=${seen}`])).split(' ')
        expect(observed).toBe(now)
        const said = await kubectl(['get', 'tunnelendpoint', 'default', '--output', 'jsonpath={.status.readyReplicas}'])
        expect(said).toBe(String(REPLICAS))
      }, SOON),
    async process(pod) {
      const id = 'jsonpath={.status.containerStatuses[0].containerID}'
      return mainProcess(await kubectl(['get', 'pod', pod, ...IN_SYSTEM, '--output', id]))
    },
  }
}
