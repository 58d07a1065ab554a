// Its tests build on each other:
// @module-tag whole-file
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { openTunnelBench, type TunnelBench } from '../tunnels/bench.ts'
import { type Edges, edgesOf } from '../tunnels/edges.ts'
import { KUBECTL_WAIT, LATER } from '../../support/patience.ts'

/** Behaviour of tunnels that only a cluster has: edges as a Deployment with two replicas, and faults of it. */

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
  vi.waitFor(async () => expect((await bench.visit(hostname, edge)).status).toBe(200), LATER)

test('the nodes’ ports serve a tunnel created by kubectl and keep the visitor’s address', async () => {
  const hostname = await bench.tunnel('web')
  bench.connect(hostname)
  await served(hostname)
  const seen = JSON.parse((await bench.visit(hostname)).body) as Record<string, string>
  const api = new URL(inject('installation').sharedUrl).hostname
  expect(seen['x-forwarded-for']).toMatch(new RegExp(`^${api.split('.').slice(0, 3).join('\\.')}\\.`))
})

test('each edge serves a tunnel whose client is connected to either edge', async () => {
  const hostname = await bench.tunnel('both')
  bench.connect(hostname)
  await settled()
  for (const address of (await edges()).values()) await served(hostname, address)
})

test('a client reconnects to another edge after a kill of its edge, and all edges serve its tunnel', async () => {
  const hostname = await bench.tunnel('killed')
  await settled()
  bench.connect(hostname)
  await served(hostname)
  for (const name of (await edges()).keys()) await kubectl(['delete', 'pod', name, ...IN_SYSTEM, '--grace-period=0', '--force'])
  await settled()
  bench.connect(hostname)
  for (const address of (await edges()).values()) await served(hostname, address)
})

test('each edge answers unknown hosts with 404 and replaces a damaged certificate for them without a restart', async () => {
  await settled()
  const before = await edges()
  const visits = () => Promise.all([...before.values()].map((address) => bench.visit('0'.repeat(16), address)))
  await vi.waitFor(async () => {
    for (const { status, headers } of await visits()) expect([status, headers['mooring-error']]).toEqual([404, 'unknown_host'])
  }, LATER)
  const serials = async () => [...new Set((await visits()).map(({ serial }) => serial))]
  const [damaged, ...others] = await serials()
  expect(others).toEqual([])

  const patch = JSON.stringify({ data: { 'tls.crt': 'bm8=' } })
  await kubectl(['patch', 'secret', 'endpoint-default-strangers', ...IN_SYSTEM, '--patch', patch])
  await vi.waitFor(async () => {
    const [renewed, ...rest] = await serials()
    expect(renewed).not.toBe(damaged)
    expect(rest).toEqual([])
  }, LATER)
  expect([...(await edges()).keys()]).toEqual([...before.keys()])
})

describe('the operator reverts manual changes to the objects of edges', () => {
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
    { does: 'unrestricted access to the mesh', what: 'networkpolicy/edge-default', patch: { spec: { ingress: [{}] } } },
    { does: 'no rights', what: 'role/edge-default', patch: { rules: [] } },
  ]
  const bodyOf = (what: string) => get(what, '--output', 'jsonpath={.spec}{.rules}{.subjects}')

  test.each(patched)('$what: $does', async ({ what, patch }) => {
    const before = await bodyOf(what)
    await kubectl(['patch', what, ...IN_SYSTEM, '--patch', JSON.stringify(patch)])
    await expect.poll(() => bodyOf(what), LATER).toBe(before)
  })

  test.each([
    ...['service/edge-default-mesh', 'poddisruptionbudget/edge-default', 'serviceaccount/edge-default'],
    ...['rolebinding/edge-default', 'secret/endpoint-default-mesh', 'secret/endpoint-default-host-keys'],
    'secret/endpoint-default-strangers',
  ])('%s, deleted', async (what) => {
    await kubectl(['delete', what, ...IN_SYSTEM])
    await expect.poll(() => get(what, '--output', 'name', '--ignore-not-found'), LATER).not.toBe('')
  })

  test('a tunnel’s certificate, deleted: each edge presents a new one', async () => {
    await settled()
    const hostname = await bench.tunnel('lost')
    bench.connect(hostname)
    await served(hostname)
    const { serial } = await bench.visit(hostname)
    await kubectl(['delete', 'secret', `tunnel-${hostname}-certificate`, ...IN_SYSTEM])
    for (const address of (await edges()).values())
      await vi.waitFor(async () => expect((await bench.visit(hostname, address)).serial).not.toBe(serial), LATER)
    await served(hostname)
  })

  test('and new tunnels work afterwards', async () => {
    await settled()
    const hostname = await bench.tunnel('after')
    // The client still verifies the original host keys.
    bench.connect(hostname)
    await served(hostname)
  })
})

test('the deletion of an endpoint removes its own objects and no others', async () => {
  const spec = {
    region: inject('installation').region.id,
    domain: 'other.test',
    sshHost: 'other.test',
    active: false,
    replicas: 1,
  }
  const other = { apiVersion: 'mooring.dev/v1alpha1', kind: 'TunnelEndpoint', metadata: { name: 'other' }, spec }
  await kubectl(['apply', '--filename', '-'], other)
  await kubectl(['wait', '--for=condition=Ready', 'tunnelendpoint/other', KUBECTL_WAIT])
  const kinds = 'deployments,services,poddisruptionbudgets,serviceaccounts,roles,rolebindings,networkpolicies,pods,secrets'
  const there = async () => (await get(kinds, '--output', 'name')).split('\n').filter((name) => name.includes('other'))
  expect((await there()).length).toBeGreaterThanOrEqual(10)
  const subjects = () => kubectl(['get', 'clusterrolebinding', 'mooring-edge', '--output', 'jsonpath={.subjects[*].name}'])
  expect(await subjects()).toBe('edge-default edge-other')

  await kubectl(['delete', 'tunnelendpoint', 'other'])
  await expect.poll(there, LATER).toEqual([])
  await expect.poll(subjects, LATER).toBe('edge-default')
  await settled()
})
