import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ClusterRoleBinding, Namespace, RoleBinding, Secret } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { createCa } from '../../operator/certificates/local-ca.ts'
import { endpoint, settings } from '../support/operator/kubernetes-objects.ts'
import { Deployment, PodDisruptionBudget, Role, ServiceAccount } from '../../operator/endpoint/kubernetes/kinds.ts'
import { createKubernetesEdges } from '../../operator/endpoint/kubernetes/kubernetes-edges.ts'
import { NetworkPolicy, Service } from '../../operator/kubernetes/kinds.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { createVirtualClock } from '../support/clocks.ts'
import { type ControlPlane, startControlPlane } from './support/control-plane.ts'

/** Objects of edges in a real API server, which has no nodes that could run them. */

const KINDS: readonly Kind[] = [
  Deployment,
  Service,
  PodDisruptionBudget,
  ServiceAccount,
  Role,
  RoleBinding,
  NetworkPolicy,
  Secret,
]
const RBAC = 'rbac.authorization.k8s.io'

const ca = await createCa(new Date())
let plane: ControlPlane
let store: KubernetesStore
beforeAll(async () => {
  plane = await startControlPlane()
  store = plane.store()
  await store.create(Namespace, { metadata: { name: SYSTEM_NAMESPACE } })
  // As the chart creates it.
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name: 'mooring-edge' }
  await store.create(ClusterRoleBinding, { metadata: { name: 'mooring-edge' }, roleRef, subjects: [] })
})
afterAll(() => plane[Symbol.asyncDispose]())

/** Creates an endpoint and the component that manages its edges. A test sets the certificates of its tunnels. */
async function start(name: string) {
  const made = await store.create(TunnelEndpoint, { metadata: { name }, spec: endpoint().spec })
  const clock = createVirtualClock()
  const tunnels = { certificates: [] as readonly string[] }
  const writes: string[] = []
  const request: KubernetesStore['client']['request'] = (asked) => {
    if (asked.method !== 'GET') writes.push(`${asked.method} ${asked.path.split('/').slice(-2).join('/')}`)
    return store.client.request(asked)
  }
  const there = { endpoints: [made] as readonly TunnelEndpoint[] }
  const edges = createKubernetesEdges({
    store: { ...store, client: { ...store.client, request } },
    ...{ settings: settings(), clock, logger: pino({ level: 'silent' }) },
    endpoints: () => there.endpoints,
    certificates: () => tunnels.certificates,
    ca: () => ca,
  })
  return {
    ...{ edges, made, clock, tunnels, there },
    written: () => writes.splice(0),
    [Symbol.asyncDispose]: () => edges.close(),
  }
}

async function objectsOf(name: string): Promise<readonly Resource<Kind>[]> {
  const lists = await Promise.all(KINDS.map((kind) => store.list(kind, { namespace: SYSTEM_NAMESPACE })))
  return lists.flatMap(({ items }) => items).filter(({ metadata }) => metadata.name.includes(name))
}

const subjects = async () =>
  (await store.get(ClusterRoleBinding, { name: 'mooring-edge' }))?.subjects
    .map(({ name }) => name)
    .filter((name) => name.includes('edge'))

test('an endpoint is rejected when its Service would have the name of another endpoint’s mesh Service', async () => {
  const make = (name: string) => store.create(TunnelEndpoint, { metadata: { name }, spec: endpoint().spec })
  await expect(make('eu-mesh')).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/metadata\.name.*must not end in -mesh/) as string,
  })
  await store.delete(TunnelEndpoint, (await make('mesh-eu')).metadata)
})

test('the first reconciliation creates all objects of edges, and the next writes nothing', async () => {
  await using eu = await start('eu')
  expect(await eu.edges.ensure(eu.made)).toMatchObject({ ready: 0, message: 'no edge answers yet' })
  expect((await objectsOf('eu')).map(({ kind }) => kind).toSorted()).toEqual(
    [...KINDS, Service, Secret].map(({ kind }) => kind).toSorted(),
  )
  expect(await subjects()).toEqual(['edge-eu'])
  eu.written()
  await eu.edges.ensure(eu.made)
  expect(eu.written()).toEqual([])
})

test('edges may read the certificate of a single new tunnel at once, and those of many with few writes', async () => {
  await using us = await start('us')
  us.tunnels.certificates = Array.from({ length: 1_000 }, (_, index) => `tunnel-${index}-certificate`)
  await us.edges.ensure(us.made)
  await us.clock.advance(60_000)
  us.written()
  const come = async (name: string) => {
    us.tunnels.certificates = [...us.tunnels.certificates, name]
    await us.edges.tunnelsChanged('us')
  }
  const onChange = vi.fn()
  us.edges.onChange(onChange)
  await come('a')
  expect(us.written()).toEqual(['PATCH roles/edge-us'])
  for (const name of ['b', 'c', 'd']) await come(name)
  expect(us.written()).toEqual([])
  await us.clock.advance(600)
  expect(onChange).toHaveBeenCalledWith('us')
  await us.edges.ensure(us.made)
  expect(us.written()).toEqual(['PATCH roles/edge-us'])
  const role = await store.get(Role, { namespace: SYSTEM_NAMESPACE, name: 'edge-us' })
  expect(role?.rules?.at(-1)?.resourceNames).toHaveLength(1_005)
})

test('every object is owned by its endpoint, and a deleted endpoint loses its role binding', async () => {
  await using asia = await start('asia')
  await asia.edges.ensure(asia.made)
  expect(await subjects()).toEqual(['edge-asia'])
  const owners = (await objectsOf('asia')).map(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid))
  expect(new Set(owners.flat())).toEqual(new Set([asia.made.metadata.uid]))
  expect(owners).not.toContain(undefined)
  asia.there.endpoints = []
  await asia.edges.forget('asia')
  expect(await subjects()).toEqual([])
})
