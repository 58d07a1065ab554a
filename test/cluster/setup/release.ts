import { fileURLToPath } from 'node:url'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { type Kubernetes, say } from './commands.ts'
import type { MooringImage } from './mooring-image.ts'

const CHART = fileURLToPath(new URL('../../../charts/mooring', import.meta.url))
const RELEASE = 'mooring'
const IN_SYSTEM = ['--namespace', SYSTEM_NAMESPACE]

/** Region of the tests, whose database servers are reached at a node's address. */
export const REGION = { id: '5f0c1f6e-6f0b-4b8e-9c39-0d6f6f1f8a01', regionId: 1, name: 'local' } as const

/** Domain and ports of the TunnelEndpoint `default` of the tests, which is reached at a node's address. */
export const EDGES = { domain: 'tunnel.test', ports: { ssh: 30_022, http: 30_080, https: 30_443 } } as const

type Image = Pick<MooringImage, 'repository' | 'tag'>

/** Installs the chart in the suite's own cluster. A release of an earlier run is upgraded to the new image. */
export async function installRelease(cluster: Kubernetes, image: Image): Promise<void> {
  const args = [
    'upgrade',
    RELEASE,
    CHART,
    ...IN_SYSTEM,
    '--install',
    '--create-namespace',
    '--wait',
    '--timeout',
    '5m',
    '-f',
    '-',
  ]
  try {
    await cluster.helm('installing the chart', args, valuesFor(image, await cluster.nodeAddress()))
  } catch (error) {
    // The cluster is gone before a developer could inspect it.
    for (const look of LOOKS) say(`kubectl ${look.join(' ')}\n${await cluster.kubectl(look)}`)
    throw error
  }
}

/** Installs the chart in a given cluster and uninstalls it with all data at the end. An existing release is tested unchanged and stays. */
export async function borrowRelease(cluster: Kubernetes, image: Image): Promise<AsyncDisposable> {
  const found = await cluster.helm('looking for Mooring', ['list', ...IN_SYSTEM, '--short', '--filter', `^${RELEASE}$`], {})
  if (found === '') await installRelease(cluster, image)
  else say('the cluster has Mooring already: its release is tested, and stays')
  return {
    async [Symbol.asyncDispose]() {
      if (found !== '') return
      const upgrade = ['upgrade', RELEASE, CHART, ...IN_SYSTEM, '--reuse-values', '-f', '-']
      await cluster.helm('allowing to delete data', upgrade, { uninstall: { deleteData: true } })
      await cluster.helm('uninstalling the chart', ['uninstall', RELEASE, ...IN_SYSTEM, '--wait', '--timeout', '5m'], {})
    },
  }
}

const LOOKS = [
  ['get', 'pods', '--all-namespaces', '--output', 'wide'],
  ['get', 'events', '--all-namespaces', '--sort-by', '.lastTimestamp'],
  ['logs', ...IN_SYSTEM, '--selector', `app.kubernetes.io/instance=${RELEASE}`, '--prefix', '--ignore-errors', '--tail', '40'],
]

const valuesFor = ({ repository, tag }: Image, address: string): object => ({
  image: { repository, tag, pullPolicy: 'IfNotPresent' },
  logLevel: 'debug',
  apiserver: {
    service: { type: 'NodePort' },
    tls: { names: [address] },
    // The suite has many failed authentications from one address.
    failedAuthPerMinute: 1_000_000,
  },
  // With NodePort the edges see the addresses of clients and visitors.
  edges: { domain: EDGES.domain, sshHost: address, ports: EDGES.ports, service: { type: 'NodePort' } },
  regions: [
    {
      ...REGION,
      displayName: REGION.name,
      motors: [
        { id: 'postgresql-15.4.0', warm: true },
        { id: 'postgresql-14.4.0', warm: false },
      ],
      exposure: 'NodePort',
      host: address,
    },
  ],
})
