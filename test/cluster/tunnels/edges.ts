import type { V1PodList } from '@kubernetes/client-node'
import { expect, vi } from 'vitest'
import { mainProcess } from '../faults/node-processes.ts'
import type { Kubernetes } from '../setup/commands.ts'
import type { Data } from '../../support/api/answers.ts'
import type { Deployment } from '../../support/deployment/deployment.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import type { TunnelBench } from './bench.ts'
import { LATER } from '../../support/patience.ts'

const REPLICAS = 2
const IN_SYSTEM = ['--namespace', 'mooring-system']
const DEPLOYMENT = ['deployment', 'edge-default', ...IN_SYSTEM]
const OF_DEFAULT = ['--selector', 'mooring.dev/endpoint=default']

/** Edges of the endpoint `default`. */
export interface Edges {
  /** Returns the addresses of edges that are ready and not terminating, by the names of their pods. */
  readonly ready: () => Promise<ReadonlyMap<string, string>>
  /** Resolves when the desired number of edges exists, all are ready, and the endpoint's status says so. */
  readonly settled: () => Promise<void>
  /** Returns the process id, on this machine, of the edge in a pod. */
  process(pod: string): Promise<number>
}

/** Whether a pod has not ended. Of evicted pods only the object is left. */
const hasNotEnded = ({ status }: V1PodList['items'][number]): boolean => !/^(Failed|Succeeded)$/.test(status?.phase ?? '')

export function edgesOf({ kubectl }: Pick<Kubernetes, 'kubectl'>): Edges {
  /** Returns the addresses of all pods by name, undefined for pods that are not ready or terminating. */
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
        // Endpoint and Deployment are read before the pods, so that changes they report are already visible in the pods.
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
        // After a manual change pods may still start or terminate, so these count, too.
        const addresses = [...(await pods()).values()]
        expect([addresses.length, addresses.includes(undefined)]).toEqual([REPLICAS, false])
      }, LATER),
    async process(pod) {
      const id = 'jsonpath={.status.containerStatuses[0].containerID}'
      return mainProcess(await kubectl(['get', 'pod', pod, ...IN_SYSTEM, '--output', id]))
    },
  }
}

/** Journal records of a tunnel as a platform admin reads them by REST, oldest first. */
export interface TunnelRecords {
  /** Path of the tunnel: `/v1/…/tunnels/{id}`. */
  readonly path: string
  /** Path of the namespace: `/v1/organizations/{o}/namespaces/{n}`. */
  readonly namespacePath: string
  requests(): Promise<Data['requests']>
  connections(): Promise<Data['connections']>
  entries(): Promise<Data['entries']>
}

export async function recordsOf(bench: TunnelBench, { call }: Deployment, name: string): Promise<TunnelRecords> {
  const { namespace, kubectl } = bench
  const uid = await kubectl(['get', 'tunnel', name, '--namespace', namespace, '--output', 'jsonpath={.metadata.uid}'])
  const [organization = '', slug = ''] = namespace.split('--')
  const namespacePath = `/v1/organizations/${organization}/namespaces/${slug}`
  const path = `${namespacePath}/tunnels/${uid}`

  async function all<Key extends 'requests' | 'connections' | 'entries'>(from: string, key: Key): Promise<Data[Key]> {
    const pages: Data[Key][number][] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const answer = await expectSuccess(call('GET', `${from}limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`))
      pages.push(...answer.body.data[key])
      cursor = answer.body.data.nextCursor
    }
    return pages.toReversed() as unknown as Data[Key]
  }

  return {
    ...{ path, namespacePath },
    requests: () => all(`${path}/requests?`, 'requests'),
    connections: () => all(`${path}/connections?`, 'connections'),
    entries: () => all(`${namespacePath}/audit?id=${uid}&`, 'entries'),
  }
}
