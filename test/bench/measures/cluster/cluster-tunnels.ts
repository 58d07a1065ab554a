import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import { Tunnel } from '../../../../crds/tunnel.ts'
import { EDGES } from '../../../cluster/setup/release.ts'
import { installationIn } from '../../../support/deployment/cluster.ts'
import { timesToForce, type FreshCluster, freshCluster, scaleOperator } from '../../fresh-cluster.ts'
import { finding, type Measure } from '../../measure.ts'
import { areSettled, until } from '../../metrics.ts'
import { type Component, mostMemory, podUsage } from '../../usage.ts'
import { copyTunnel } from '../../seed.ts'
import { summary } from '../../statistics.ts'

const TUNNELS = 10_000
/** Timeout far above the targets, so that a missed target still has a figure. */
const SELDOM = { patienceMs: 900_000, everyMs: 500 }
/** Longer than the checks that an operator runs half a minute after its start. */
const REST_MS = 90_000
const WATCHED_MS = 60_000
const CHANGES = 50
const FIRST = 'first'
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzDbTh9uvpyKmDDZhcRT8bM8mOTXNQMWfnV8fQl0rMp'
const ASSIGNED = 'controller="tunnel",result="settled",reason="Assigned"'

/** Creates ten thousand settled tunnels, and leaves the cluster without an operator. @returns the tunnels' hostnames */
async function seed(cluster: FreshCluster, namespace: string): Promise<readonly string[]> {
  const { store, clients } = cluster
  const first = { namespace, name: FIRST }
  await store.create(Tunnel, { metadata: first, spec: { regionId: 1, config: { authorizedKeys: [KEY] } } })
  await clients.kubectl(['wait', '--for=condition=Ready', `tunnel/${FIRST}`, '--namespace', namespace, '--timeout=60s'])
  await scaleOperator(cluster, 0)
  return copyTunnel(store, first, TUNNELS)
}

/** Whether the edges serve the tunnel's own certificate. */
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
  const node = await cluster.clients.nodeAddress()
  const namespace = await cluster.namespace()
  const hosts = (await seed(cluster, namespace)).map((hostname) => `${hostname}.${EDGES.domain}`)

  const start = performance.now()
  await scaleOperator(cluster, 1)
  await using deployment = await installationIn(cluster)
  const { metricsUrls } = deployment.installation
  await until('all tunnels are settled', () => areSettled(metricsUrls, ASSIGNED, TUNNELS), SELDOM)
  const settledMs = performance.now() - start
  const some = hosts.filter((_, index) => index % (TUNNELS / 50) === 0)
  const served = async () => (await Promise.all(some.map((host) => isServed(node, host)))).every(Boolean)
  await until('edges have their certificates', served, SELDOM)
  const servedMs = performance.now() - start

  await delay(REST_MS)
  const usage = (component: Component) => podUsage(cluster.clients, component)
  const before = await usage('operator')
  await delay(WATCHED_MS)
  const after = await usage('operator')
  const used = after.map(({ cpuSeconds }, index) => (cpuSeconds - (before[index]?.cpuSeconds ?? 0)) / (WATCHED_MS / 1e5))
  const changes = summary(await timesToForce(cluster, { namespace, name: FIRST, host: hosts[0] ?? '' }, CHANGES))
  const seconds = (ms: number) => ({ value: ms / 1e3, unit: 's' })
  const memory = (value: number) => ({ value, unit: 'MB', digits: 0 })
  return [
    finding('start of the pod to edges that have all certificates', seconds(servedMs)),
    finding('edge, memory of a pod (RSS), maximum', memory(mostMemory(await usage('edge'))), 300),
    finding('operator, processor time while nothing changes', { value: Math.max(...used), unit: '%', digits: 2 }, 1),
    finding('operator: start of the pod to settled', seconds(settledMs), 30),
    finding('change of a tunnel to in force at both edges, p50', { value: changes.median, unit: 'ms' }, 1_000),
    finding('change of a tunnel to in force at both edges, p99', { value: changes.p99, unit: 'ms' }),
    finding('operator, memory (RSS)', memory(mostMemory(await usage('operator')))),
    finding('apiserver, memory of a pod (RSS), maximum', memory(mostMemory(await usage('apiserver')))),
  ]
}

export const clusterTunnels: Measure = {
  name: 'cluster-tunnels',
  method: `In a new cluster, ${TUNNELS} Tunnels, each with a certificate of its own, are created through the Kubernetes API in settled state while no operator runs. Then one operator starts. It is settled when each tunnel was reconciled and all queues are empty. After ${REST_MS / 1_000} s of rest, nothing changes for ${WATCHED_MS / 1_000} s. Then the list of allowed visitors of one tunnel changes ${CHANGES} times.`,
  run,
}
