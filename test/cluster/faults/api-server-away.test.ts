import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { codeOf } from '../../support/api/answers.ts'
import { query } from '../../support/postgresql/sql.ts'
import { openTunnelBench, type TunnelBench } from '../tunnels/bench.ts'
import { type Edges, edgesOf } from '../tunnels/edges.ts'
import { type ApiServer, apiServerOf } from './node-processes.ts'
import { type FaultBench, openFaultBench } from './bench.ts'
import { KUBECTL_WAIT, LATER, patient } from '../../support/patience.ts'

/** Outage of the API server, longer than the leader's lease and the caches of permissions. */
const AWAY_MS = 60_000
const PROBE = `back-${Date.now().toString(36)}`

let bench: FaultBench
let tunnels: TunnelBench
let edges: Edges
let apiServer: ApiServer
beforeAll(async () => {
  bench = await openFaultBench()
  tunnels = await openTunnelBench()
  edges = edgesOf(tunnels)
  apiServer = await apiServerOf(inject('cluster').kubeconfig)
})
afterAll(async () => {
  await apiServer[Symbol.asyncDispose]()
  await tunnels[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

/** Opens a tunnel with a client at one edge. Returns also the process id of the other edge. */
async function openTunnel() {
  await edges.settled()
  const [[, kept] = ['', ''], [lost, restarted] = ['', '']] = [...(await edges.ready())]
  const hostname = await tunnels.tunnel('through')
  tunnels.connect(hostname, kept)
  const pid = await edges.process(lost)
  return { pid, hostname, kept, restarted }
}

test(
  'databases and tunnels work during an outage of the Kubernetes API server, the API is 503, and all components recover',
  { timeout: patient(360_000) },
  async () => {
    const instance = await bench.granted('before')
    await query(instance, 'CREATE TABLE kept (n int)')
    const path = `/v1/instances/${instance.id}`
    const tunnel = await openTunnel()
    const visit = async (edge: string) => (await tunnels.visit(tunnel.hostname, edge)).status
    for (const edge of [tunnel.kept, tunnel.restarted]) await expect.poll(() => visit(edge), LATER).toBe(200)
    await apiServer.kill()
    process.kill(tunnel.pid, 'SIGKILL')
    const until = Date.now() + AWAY_MS
    const answers = new Set<string>()
    for (let n = 1; Date.now() < until; n += 1) {
      await query(instance, `INSERT INTO kept VALUES (${n})`)
      expect(await visit(tunnel.kept)).toBe(200)
      answers.add(`GET ${codeOf(await bench.editor('GET', path))}`)
      answers.add(`POST ${codeOf(await bench.create('during'))}`)
      expect(await query(instance, 'SELECT count(*)::int AS n FROM kept')).toEqual([{ n }])
    }
    expect([...answers].filter((answer) => !/^(GET 200 OK|(GET|POST) 503 unavailable)$/.test(answer))).toEqual([])
    expect(answers).toContain('POST 503 unavailable')
    // The node restarted the killed edge, which knows the tunnels from its stored snapshot.
    await expect.poll(() => visit(tunnel.restarted), LATER).toBe(200)
    await apiServer.start()

    const during = await bench.granted('during')
    expect(await query(during, 'SELECT current_user AS user')).toEqual([{ user: during.name }])
    expect(codeOf(await bench.editor('GET', path))).toBe('200 OK')
    const isReady = async (component: 'operator' | 'apiserver') => {
      const pods = await bench.components.pods(component)
      return pods.length === 2 && pods.every(({ ready }) => ready)
    }
    // The kubelet restarts a component later after each exit (back-off).
    const bothReady = async () => [await isReady('operator'), await isReady('apiserver')]
    await expect.poll(bothReady, LATER).toEqual([true, true])
    expect((await bench.editor('DELETE', path)).status).toBe(200)
    await bench.expectOneOfEach()
    for (const edge of [tunnel.kept, tunnel.restarted]) expect(await visit(edge)).toBe(200)
    // Kubernetes' own controllers, which delete namespaces, need some time to recover.
    await bench.clients.kubectl(['create', 'namespace', PROBE])
    await bench.clients.kubectl(['delete', 'namespace', PROBE, KUBECTL_WAIT])
    // The controllers of EndpointSlices also need some time.
    const service = ['--namespace', SYSTEM_NAMESPACE, '--selector', 'kubernetes.io/service-name=mooring-apiserver']
    const readiness = ['get', 'endpointslices', ...service, '--output', 'jsonpath={.items[*].endpoints[*].conditions.ready}']
    await expect.poll(() => bench.clients.kubectl(readiness), LATER).toBe('true true')
    await expect.poll(async () => codeOf(await bench.editor('GET', '/v1/me')), LATER).toBe('200 OK')
  },
)
