import { fileURLToPath } from 'node:url'
import { MOTORS } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
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
  await cluster.kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM_NAMESPACE } })
  await makeClaim(cluster, { namespace: SYSTEM_NAMESPACE, claim: CLAIMS.operator })
  try {
    await cluster.helm('installing the chart', args, valuesFor(image, await cluster.nodeAddress()))
    await makeClaim(cluster, { namespace: SHARED_NAMESPACE, claim: CLAIMS.servers })
  } catch (error) {
    // The cluster is gone before a developer could inspect it.
    for (const look of LOOKS) say(`kubectl ${look.join(' ')}\n${await cluster.kubectl(look)}`)
    throw error
  }
}

/** Claims of the volume with the backups, in the namespaces of the operator and of the servers. */
const CLAIMS = { operator: 'backups', servers: 'backups' }

interface Claim {
  readonly namespace: string
  readonly claim: string
}

/** Makes a volume of the node and its claim. A pod that is not root may write to this directory of the node. */
async function makeClaim({ kubectl }: Kubernetes, { namespace, claim }: Claim): Promise<void> {
  const name = `${namespace}-${claim}`
  const size = { storage: '10Gi' }
  const shared = { accessModes: ['ReadWriteMany'], storageClassName: '' }
  const objects = [
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name } },
      spec: { ...shared, capacity: size, persistentVolumeReclaimPolicy: 'Retain', hostPath: { path: '/var/tmp' } },
    },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claim, namespace } },
      spec: { ...shared, volumeName: name, resources: { requests: size } },
    },
  ]
  for (const object of objects) await kubectl(['apply', '-f', '-'], object)
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
  backups: { enabled: true, claims: CLAIMS },
  apiserver: {
    service: { type: 'NodePort' },
    tls: { names: [address] },
    // The suite has many failed authentications from one address.
    failedAuthPerMinute: 1_000_000,
  },
  // The tests' receivers are on this machine.
  webhooks: { privateAddresses: true },
  // With NodePort the edges see the addresses of clients and visitors.
  edges: { domain: EDGES.domain, sshHost: address, ports: EDGES.ports, service: { type: 'NodePort' } },
  regions: [
    {
      ...REGION,
      displayName: REGION.name,
      motors: [
        { id: 'postgresql-15.4.0', warm: true },
        { id: 'postgresql-14.4.0', warm: false },
        { id: 'mariadb-10.7.4', warm: false },
        { id: 'mysql-8.0.29', warm: false },
        // The stand-in, 5.7.22, has no TLS that clients of today accept.
        { id: 'mysql-5.7.38', warm: false, tls: 'none' },
        { id: 'mongodb-7.0.2', warm: false },
        { id: 'mongodb-5.0.9', warm: false },
      ],
      exposure: 'NodePort',
      host: address,
    },
  ],
  plans: [plan('small', 512, 1), plan('medium', 768, 1), plan('large', 768, 2)],
})

const item = (kind: 'storage' | 'backup'): object => ({
  ...{ id: kind, name: kind, kind, unit: 'GiB-month' },
  price: { amount: '0.10', currency: 'EUR', unit: 'GiB-month' },
})

/** Returns a plan of the chart's values. Its server is small, as the nodes share this machine. `medium` has the storage of `small`. */
const plan = (name: string, memoryMiB: number, storageGiB: number): object => ({
  name,
  spec: {
    ...{ name, cpu: 0.2, memoryMiB, storageGiB, engines: MOTORS },
    price: { amount: '9.00', currency: 'EUR', unit: 'month' },
    billableItems: [item('storage'), item('backup')],
  },
})
