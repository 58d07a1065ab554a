import type { Data } from '../../support/api/answers.ts'
import type { Deployment } from '../../support/deployment/deployment.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import type { TunnelBench } from './bench.ts'

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
