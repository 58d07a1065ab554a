import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { openTunnelBench, type TunnelBench } from '../tunnels/bench.ts'
import { type Edges, edgesOf, SOON } from '../tunnels/edges.ts'

/** Tunnels, as only a cluster shows them: edges as a Deployment of two, and what happens to it. */

const IN_SYSTEM = ['--namespace', 'mooring-system']

let bench: TunnelBench
let kubectl: TunnelBench['kubectl']
let edges: Edges['ready']
let settled: Edges['settled']
beforeAll(async () => {
  bench = await openTunnelBench()
  ;({ kubectl } = bench)
  ;({ ready: edges, settled } = edgesOf(bench))
})
afterAll(() => bench[Symbol.asyncDispose]())

const get = (...what: string[]) => kubectl(['get', ...what, ...IN_SYSTEM])
const served = (hostname: string, edge?: string) =>
  vi.waitFor(async () => expect((await bench.visit(hostname, edge)).status).toBe(200), SOON)

test('a tunnel that kubectl made is served by the nodes’ ports, which see the visitor’s own address', async () => {
  const hostname = await bench.tunnel('web')
  bench.connect(hostname)
  await served(hostname)
  const seen = JSON.parse((await bench.visit(hostname)).body) as Record<string, string>
  const api = new URL(inject('installation').sharedUrl).hostname
  expect(seen['x-forwarded-for']).toMatch(new RegExp(`^${api.split('.').slice(0, 3).join('\\.')}\\.`))
})

test('each edge serves each tunnel, whichever its client is connected to', async () => {
  const hostname = await bench.tunnel('both')
  bench.connect(hostname)
  await settled()
  for (const address of (await edges()).values()) await served(hostname, address)
})

test('when an edge is killed, its tunnel’s client comes back by another and is served at once', async () => {
  const hostname = await bench.tunnel('killed')
  await settled()
  bench.connect(hostname)
  await served(hostname)
  for (const name of (await edges()).keys()) await kubectl(['delete', 'pod', name, ...IN_SYSTEM, '--grace-period=0', '--force'])
  await settled()
  bench.connect(hostname)
  for (const address of (await edges()).values()) await served(hostname, address)
})

test('a visitor of a hostname that no tunnel has is told so by each edge, with a certificate that is made good without a restart', async () => {
  await settled()
  const before = await edges()
  const visits = () => Promise.all([...before.values()].map((address) => bench.visit('0'.repeat(16), address)))
  await vi.waitFor(async () => {
    for (const { status, headers } of await visits()) expect([status, headers['mooring-error']]).toEqual([404, 'unknown_host'])
  }, SOON)
  const serials = async () => [...new Set((await visits()).map(({ serial }) => serial))]
  const [damaged, ...others] = await serials()
  expect(others).toEqual([])

  const patch = JSON.stringify({ data: { 'tls.crt': 'bm8=' } })
  await kubectl(['patch', 'secret', 'endpoint-default-strangers', ...IN_SYSTEM, '--patch', patch])
  await vi.waitFor(async () => {
    const [renewed, ...rest] = await serials()
    expect(renewed).not.toBe(damaged)
    expect(rest).toEqual([])
  }, SOON)
  expect([...(await edges()).keys()]).toEqual([...before.keys()])
})

describe('what somebody does to the objects of edges by hand is put back', () => {
  const patched = [
    { does: 'no edges', what: 'deployment/edge-default', patch: { spec: { replicas: 0 } } },
    {
      does: 'another image',
      what: 'deployment/edge-default',
      patch: { spec: { template: { spec: { containers: [{ name: 'edge', image: 'localhost/other:1' }] } } } },
    },
    { does: 'one more field', what: 'deployment/edge-default', patch: { spec: { template: { spec: { hostNetwork: true } } } } },
    {
      does: 'another port',
      what: 'service/edge-default',
      patch: { spec: { ports: [{ name: 'ssh', port: 30_022, targetPort: 1 }] } },
    },
    { does: 'everybody in the mesh', what: 'networkpolicy/edge-default', patch: { spec: { ingress: [{}] } } },
    { does: 'no rights', what: 'role/edge-default', patch: { rules: [] } },
  ]
  const bodyOf = (what: string) => get(what, '--output', 'jsonpath={.spec}{.rules}{.subjects}')

  test.each(patched)('$what: $does', async ({ what, patch }) => {
    const before = await bodyOf(what)
    await kubectl(['patch', what, ...IN_SYSTEM, '--patch', JSON.stringify(patch)])
    await expect.poll(() => bodyOf(what), SOON).toBe(before)
  })

  test.each([
    ...['service/edge-default-mesh', 'poddisruptionbudget/edge-default', 'serviceaccount/edge-default'],
    ...['rolebinding/edge-default', 'secret/endpoint-default-mesh', 'secret/endpoint-default-host-keys'],
    'secret/endpoint-default-strangers',
  ])('%s, deleted', async (what) => {
    await kubectl(['delete', what, ...IN_SYSTEM])
    await expect.poll(() => get(what, '--output', 'name', '--ignore-not-found'), SOON).not.toBe('')
  })

  test('a tunnel’s certificate, deleted: it is obtained anew, and each edge shows the new one', async () => {
    await settled()
    const hostname = await bench.tunnel('lost')
    bench.connect(hostname)
    await served(hostname)
    const { serial } = await bench.visit(hostname)
    await kubectl(['delete', 'secret', `tunnel-${hostname}-certificate`, ...IN_SYSTEM])
    for (const address of (await edges()).values())
      await vi.waitFor(async () => expect((await bench.visit(hostname, address)).serial).not.toBe(serial), SOON)
    await served(hostname)
  })

  test('and tunnels are served on', async () => {
    await settled()
    const hostname = await bench.tunnel('after')
    // Known by the same host keys as ever.
    bench.connect(hostname)
    await served(hostname)
  })
})

test('an endpoint that is deleted takes all of its own along, and nothing of another', async () => {
  const spec = {
    region: inject('installation').region.id,
    domain: 'other.test',
    sshHost: 'other.test',
    active: false,
    replicas: 1,
  }
  const other = { apiVersion: 'mooring.dev/v1alpha1', kind: 'TunnelEndpoint', metadata: { name: 'other' }, spec }
  await kubectl(['apply', '--filename', '-'], other)
  await kubectl(['wait', '--for=condition=Ready', 'tunnelendpoint/other', '--timeout=60s'])
  const kinds = 'deployments,services,poddisruptionbudgets,serviceaccounts,roles,rolebindings,networkpolicies,pods,secrets'
  const there = async () => (await get(kinds, '--output', 'name')).split('\n').filter((name) => name.includes('other'))
  expect((await there()).length).toBeGreaterThanOrEqual(10)
  const subjects = () => kubectl(['get', 'clusterrolebinding', 'mooring-edge', '--output', 'jsonpath={.subjects[*].name}'])
  expect(await subjects()).toBe('edge-default edge-other')

  await kubectl(['delete', 'tunnelendpoint', 'other'])
  await expect.poll(there, { timeout: 90_000, interval: 500 }).toEqual([])
  await expect.poll(subjects, SOON).toBe('edge-default')
  await settled()
})
