import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Lease, Namespace, Secret } from '../../crds/core.ts'
import { DatabaseArchive } from '../../crds/database-archive.ts'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import { annotations, FINALIZER, SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { Region } from '../../crds/region.ts'
import { databaseArchive } from '../../test/builders/archive.ts'
import { createVirtualClock, settle } from '../../test/support/clocks.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import type { ApiResponse, ApiRequest } from '../../store/kubernetes/client.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { removeData, removeDefinitions } from './data.ts'
import { inWords } from './inventory.ts'

const log = pino({ level: 'silent' })
const REGION_ID = '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10'

/** Installation without pods: its store is an embedded one, and its API server has no Deployments. */
async function installation(there: { organization?: boolean } = {}) {
  const opened = await openTemporaryStore()
  const requests: ApiRequest[] = []
  let answer: (request: ApiRequest) => Promise<ApiResponse> = () => Promise.resolve({ status: 404, body: {} })
  const client: Pick<KubernetesStore['client'], 'request'> = {
    request: (request) => {
      requests.push(request)
      return answer(request)
    },
  }
  const store = Object.assign(Object.create(opened.store) as KubernetesStore, { client })
  for (const name of [SYSTEM_NAMESPACE, SHARED_NAMESPACE]) await store.create(Namespace, { metadata: { name } })
  await store.create(Secret, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'mooring-ca' }, data: {} })
  await store.create(Secret, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'somebodys-own' }, data: {} })
  await store.create(Lease, { metadata: { namespace: SYSTEM_NAMESPACE, name: 'mooring-operator' }, spec: {} })
  await store.create(Region, { metadata: { name: 'here' }, spec: { id: REGION_ID, regionId: 1, name: 'here' } })
  if (there.organization) await store.create(Organization, { metadata: { name: 'acme' }, spec: { name: 'Acme' } })
  const deps = { store, log }
  const answering = (desired: typeof answer) => {
    answer = desired
  }
  return { ...deps, deps, requests, answering, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}

const keep = { deleteData: false, revision: 3 }
const names = async (store: KubernetesStore) => (await store.list(Secret)).items.map(({ metadata }) => metadata.name)

test('nothing is deleted while there is tenants’ data, and the message names the options', async () => {
  await using there = await installation({ organization: true })
  await expect(removeData(there.deps, keep)).rejects.toMatchObject({
    code: 'data_exists',
    message: expect.stringMatching(/1 organizations.*mooring\.dev\/delete-data=true.*helm rollback mooring 3/) as string,
  })
  expect((await there.store.list(Region)).items).toHaveLength(1)
  expect(there.requests).toEqual([])
})

test.each([
  { when: 'there is no tenants’ data', organization: false, deleteData: false, marked: false },
  { when: 'the values say so', organization: true, deleteData: true, marked: false },
  { when: 'the Namespace says so', organization: true, deleteData: false, marked: true },
])('when $when, all objects of Mooring are deleted, and no others', async ({ organization, deleteData, marked }) => {
  await using there = await installation({ organization })
  const { store } = there
  if (marked) {
    const metadata = { annotations: { [annotations.deleteData]: 'true' } }
    await store.mergePatch(Namespace, { name: SHARED_NAMESPACE }, { metadata })
  }
  await removeData(there.deps, { ...keep, deleteData })
  expect(await names(store)).toEqual(['somebodys-own'])
  // Host keys outlive their endpoints, so that no object names them.
  const query = { labelSelector: 'mooring.dev/host-keys' }
  expect(there.requests).toContainEqual(
    expect.objectContaining({ method: 'DELETE', path: expect.stringMatching(/secrets$/) as string, query }),
  )
  for (const kind of [Region, Organization, Lease]) expect((await store.list(kind)).items).toEqual([])
})

test('backups whose repository does not answer are let go after some minutes', async () => {
  await using there = await installation()
  const { metadata, spec } = databaseArchive('0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a99')
  const finalizers = [FINALIZER]
  await there.store.create(DatabaseArchive, { metadata: { namespace: SHARED_NAMESPACE, name: metadata.name, finalizers }, spec })
  await expect(removeData(there.deps, keep)).rejects.toMatchObject({
    message: expect.stringContaining('1 databasearchives') as string,
  })
  const clock = createVirtualClock()
  const removed = removeData({ ...there.deps, clock }, { ...keep, deleteData: true }).then(() => 'removed')
  while ((await Promise.race([removed, settle()])) !== 'removed') await clock.advance(1_000)
  expect((await there.store.list(DatabaseArchive)).items).toEqual([])
  expect(clock.now()).toBeGreaterThan(120_000)
})

const scaledTo = (requests: readonly ApiRequest[]) =>
  requests.flatMap(({ method, path, body }) => (method === 'PATCH' ? [[path.split('/').at(-2), body]] : []))

test('data created while the API is being stopped is found: nothing is deleted, and the API runs again', async () => {
  await using there = await installation()
  there.answering(async ({ method, path }) => {
    if (method === 'PATCH' && (await there.store.list(Organization)).items.length === 0)
      await there.store.create(Organization, { metadata: { name: 'acme' }, spec: { name: 'Acme' } })
    if (path.endsWith('/pods')) return { status: 200, body: { items: [] } }
    return { status: 200, body: { spec: { replicas: 2 } } }
  })
  await expect(removeData(there.deps, keep)).rejects.toMatchObject({ code: 'data_exists' })
  expect((await there.store.list(Region)).items).toHaveLength(1)
  expect(scaledTo(there.requests)).toEqual([
    ['mooring-apiserver', { spec: { replicas: 0 } }],
    ['mooring-apiserver', { spec: { replicas: 2 } }],
  ])
})

test('data created even later is deleted only with permission', async () => {
  await using there = await installation()
  there.answering(async ({ path }) => {
    if (path.includes('mooring-operator') && (await there.store.list(Organization)).items.length === 0)
      await there.store.create(Organization, { metadata: { name: 'acme' }, spec: { name: 'Acme' } })
    return { status: 404, body: {} }
  })
  await removeData(there.deps, keep)
  expect((await there.store.list(Organization)).items).toHaveLength(1)
})

test('the definitions are deleted only when they have no objects', async () => {
  await using there = await installation()
  await removeDefinitions(there.deps)
  expect(there.requests).toEqual([])
  await removeData(there.deps, keep)
  there.requests.length = 0
  await removeDefinitions(there.deps)
  expect(there.requests.map(({ method }) => method)).toEqual(CUSTOM_KINDS.map(() => 'DELETE'))
})

test.each([
  { counts: [], text: undefined },
  { counts: [{ plural: 'plans', count: 0 }], text: undefined },
  {
    counts: [
      { plural: 'plans', count: 2 },
      { plural: 'regions', count: 0 },
      { plural: 'x', count: 1 },
    ],
    text: '2 plans, 1 x',
  },
])('$counts is $text', ({ counts, text }) => expect(inWords(counts)).toBe(text))
