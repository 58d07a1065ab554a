import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import { Tunnel } from '../../../crds/tunnel.ts'
import { createCache } from '../../../store/cache.ts'
import { EDGES } from '../../cluster/setup/release.ts'
import { installationIn } from '../../support/cluster-home.ts'
import { type FreshCluster, freshCluster, scaleOperator } from '../fresh-cluster.ts'
import { finding, type Measure } from '../measure.ts'
import { sumOf, until } from '../metrics.ts'
import { type Component, mostMemory, podUsage } from '../pod-usage.ts'

const TUNNELS = 10_000
const AT_ONCE = 32
/** Far beyond the targets, so that a miss has a figure. */
const PATIENCE_MS = 900_000
const REST_MS = 20_000
const WATCHED_MS = 60_000
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzDbTh9uvpyKmDDZhcRT8bM8mOTXNQMWfnV8fQl0rMp'
const ASSIGNED = 'controller="tunnel",result="settled",reason="Assigned"'

async function createTunnels({ store }: FreshCluster, namespace: string): Promise<void> {
  let made = 0
  async function next(): Promise<void> {
    while (made < TUNNELS) {
      const name = `tunnel-${made++}`
      await store.create(Tunnel, { metadata: { namespace, name }, spec: { regionId: 1, config: { authorizedKeys: [KEY] } } })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

/** Whether the edges show a visitor the tunnel's own certificate. */
function isServed(host: string, servername: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: EDGES.ports.https, servername, rejectUnauthorized: false })
    const answer = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.once('secureConnect', () => answer(socket.getPeerCertificate().subjectaltname === `DNS:${servername}`))
    socket.once('error', () => answer(false))
  })
}

async function run() {
  await using cluster = await freshCluster()
  await cluster.install()
  const namespace = await cluster.namespace()
  const node = await cluster.clients.nodeAddress()
  const tunnels = createCache({ store: cluster.store, kind: Tunnel })
  const stopping = new AbortController()
  const running = tunnels.run(stopping.signal)
  await tunnels.synced()

  const start = performance.now()
  await createTunnels(cluster, namespace)
  const createdMs = performance.now() - start
  const valid = () => tunnels.list().filter(({ status }) => status?.certificate?.status === 'valid')
  await until('all tunnels have certificates', async () => (await delay(500), valid().length === TUNNELS), PATIENCE_MS)
  const readyMs = performance.now() - start
  const hosts = valid().map(({ status }) => `${status?.hostname ?? ''}.${EDGES.domain}`)
  const some = hosts.filter((_, index) => index % (TUNNELS / 50) === 0)
  const served = async () => (await Promise.all(some.map((host) => isServed(node, host)))).every(Boolean)
  await until('edges have them', served, PATIENCE_MS)
  const servedMs = performance.now() - start

  stopping.abort()
  await running
  await delay(REST_MS)
  const usage = (component: Component) => podUsage(cluster.clients, component)
  const before = await usage('operator')
  await delay(WATCHED_MS)
  const after = await usage('operator')
  const used = after.map(({ cpuSeconds }, index) => (cpuSeconds - (before[index]?.cpuSeconds ?? 0)) / (WATCHED_MS / 1e5))
  const edges = await usage('edge')

  await scaleOperator(cluster, 0)
  const restart = performance.now()
  await scaleOperator(cluster, 1)
  await using home = await installationIn(cluster)
  const { metricsUrls } = home.installation
  const isSettled = async () =>
    (await sumOf(metricsUrls, 'mooring_reconcile_total', ASSIGNED)) >= TUNNELS &&
    (await sumOf(metricsUrls, 'mooring_queue_depth')) === 0
  await until('all tunnels are settled', isSettled, PATIENCE_MS)
  const settledMs = performance.now() - restart
  const seconds = (ms: number) => ({ value: ms / 1e3, unit: 's' })
  const memory = (value: number) => ({ value, unit: 'MB', digits: 0 })
  return [
    finding('made', seconds(createdMs)),
    finding('all with a certificate', seconds(readyMs)),
    finding('all served', seconds(servedMs)),
    finding('edge, memory of a pod (RSS), the most', memory(mostMemory(edges)), 300),
    finding('operator, processor time while nothing changes', { value: Math.max(...used), unit: '%', digits: 2 }, 1),
    finding('operator: start of the pod to settled', seconds(settledMs), 30),
    finding('operator, memory (RSS)', memory(mostMemory(await usage('operator')))),
    finding('apiserver, memory of a pod (RSS), the most', memory(mostMemory(await usage('apiserver')))),
  ]
}

export const clusterTunnels: Measure = {
  name: 'cluster-tunnels',
  method: `In a new cluster, ${TUNNELS} Tunnels are made through the Kubernetes API, ${AT_ONCE} at a time, each with a certificate of its own; then nothing changes for ${(REST_MS + WATCHED_MS) / 1_000} s; then the operator is started anew: settled is when each tunnel was reconciled and no queue has a key.`,
  run,
}
