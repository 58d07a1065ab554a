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

/** Of pods that were put out nothing but the record is left. */
const hasNotEnded = ({ status }: V1PodList['items'][number]): boolean => !/^(Failed|Succeeded)$/.test(status?.phase ?? '')

export function edgesOf({ kubectl }: Pick<Kubernetes, 'kubectl'>): Edges {
  /** Names of all pods with their addresses, which those that are not ready or that end do not have. */
  async function pods(): Promise<ReadonlyMap<string, string | undefined>> {
    const { items } = JSON.parse(await kubectl(['get', 'pods', ...IN_SYSTEM, ...OF_DEFAULT, '--output', 'json'])) as V1PodList
    return new Map(
      items.filter(hasNotEnded).map(({ metadata, status }) => {
        const serves = status?.containerStatuses?.[0]?.ready === true && metadata?.deletionTimestamp === undefined
        return [metadata?.name ?? '', serves ? status.podIP : undefined]
      }),
    )
  }

  async function fields<Name extends string>(
    what: readonly string[],
    paths: Record<Name, string>,
  ): Promise<Record<Name, string>> {
    const names = Object.keys(paths) as Name[]
    const text = await kubectl(['get', ...what, '--output', `jsonpath=${names.map((name) => `{.${paths[name]}}`).join(' ')}`])
    return Object.fromEntries(text.split(' ').map((value, index) => [names[index], value])) as Record<Name, string>
  }

  return {
    async ready() {
      return new Map([...(await pods())].flatMap(([name, address]) => (address === undefined ? [] : [[name, address]])))
    },
    settled: () =>
      vi.waitFor(async () => {
        // Asked first: what these say has begun is to be seen among the pods.
        const { generation } = await fields(['tunnelendpoint', 'default'], { generation: 'metadata.generation' })
        const endpoint = { observed: 'status.observedGeneration', ready: 'status.readyReplicas' }
        expect(await fields(['tunnelendpoint', 'default'], endpoint)).toEqual({ observed: generation, ready: `${REPLICAS}` })
        const { wanted, ...rollout } = await fields(DEPLOYMENT, {
          wanted: 'metadata.generation',
          observed: 'status.observedGeneration',
          replicas: 'status.replicas',
          updated: 'status.updatedReplicas',
        })
        expect(rollout).toEqual({ observed: wanted, replicas: `${REPLICAS}`, updated: `${REPLICAS}` })
        // What a change by hand began, and its end, may be under way: pods that start and pods that end count.
        const addresses = [...(await pods()).values()]
        expect([addresses.length, addresses.includes(undefined)]).toEqual([REPLICAS, false])
      }, SOON),
    async process(pod) {
      const id = 'jsonpath={.status.containerStatuses[0].containerID}'
      return mainProcess(await kubectl(['get', 'pod', pod, ...IN_SYSTEM, '--output', id]))
    },
  }
}
