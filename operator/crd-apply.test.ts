import { pino } from 'pino'
import { expect, test } from 'vitest'
import { customResourceDefinition } from '../crds/schema/definition.ts'
import { Plan } from '../crds/plan.ts'
import type { ApiRequest, KubernetesClient } from '../store/kubernetes/client.ts'
import { applyCrds } from './crd-apply.ts'

interface Live {
  metadata: { name: string; resourceVersion: string; annotations?: Record<string, string> }
  spec: object
  status?: { conditions: { type: string; status: string }[] | null }
}

/** API server reduced to what definitions need. It sets a default, counts revisions, and serves a definition from the second read on. */
function apiServer(held?: Live, refuse?: { status: number; message: string }) {
  const state = { live: held, writes: [] as ApiRequest[], conflicts: 0 }
  const answer = (status: number) => {
    const served = structuredClone(state.live)
    if (state.live) {
      const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True' }))
      state.live.status = { conditions }
    }
    return { status, body: served }
  }
  function put({ metadata: { name, annotations = {} }, spec }: Live): void {
    const filled = { conversion: { strategy: 'None' }, ...spec }
    const before = state.live && [state.live.spec, state.live.metadata.annotations ?? {}]
    if (JSON.stringify([filled, annotations]) === JSON.stringify(before)) return
    const resourceVersion = `${Number(state.live?.metadata.resourceVersion ?? 0) + 1}`
    state.live = { metadata: { name, resourceVersion, annotations }, spec: filled, status: { conditions: null } }
  }
  const client: Pick<KubernetesClient, 'request'> = {
    request(request) {
      if (request.method === 'GET') return Promise.resolve(state.live ? answer(200) : { status: 404, body: {} })
      state.writes.push(request)
      if (refuse) return Promise.resolve({ status: refuse.status, body: { message: refuse.message } })
      if (state.conflicts-- > 0) return Promise.resolve({ status: 409, body: {} })
      put(request.body as Live)
      return Promise.resolve(answer(200))
    },
  }
  const apply = (version = '1.2.3') => {
    const signal = new AbortController().signal
    return applyCrds({ client: client as KubernetesClient, log: pino({ level: 'silent' }), kinds: [Plan], version }, signal)
  }
  return { state, apply }
}

test('a missing definition is created, and apply waits until it is served', async () => {
  const { state, apply } = apiServer()
  await apply()
  expect(state.writes.map(({ method }) => method)).toEqual(['POST'])
  expect(state.live?.spec).toMatchObject({ names: { plural: 'plans' } })
})

test('the spec of an older definition is replaced, and fields that the API server defaulted stay', async () => {
  const old = {
    group: 'mooring.dev',
    versions: [{ name: 'v1alpha1', schema: 'with an old rule' }],
    conversion: { strategy: 'None' },
  }
  const { state, apply } = apiServer({ metadata: { name: 'plans.mooring.dev', resourceVersion: '7' }, spec: old })
  await apply()
  expect(state.live?.spec).toEqual({ ...customResourceDefinition(Plan).spec, conversion: { strategy: 'None' } })
  expect(JSON.stringify(state.live?.spec)).not.toContain('an old rule')
})

test('an unchanged definition is not written', async () => {
  const { state, apply } = apiServer()
  await apply()
  const revision = state.live?.metadata.resourceVersion
  await apply()
  expect(state.live?.metadata.resourceVersion).toBe(revision)
})

test.each([
  { which: 'a newer version', held: '1.10.0', written: 0 },
  { which: 'the same version', held: '1.2.3', written: 1 },
  { which: 'an older version', held: '1.2.2', written: 1 },
])('a definition of $which is written $written times', async ({ held, written }) => {
  const annotations = { 'mooring.dev/version': held, 'example.com/own': 'stays' }
  const { state, apply } = apiServer({ metadata: { name: 'plans.mooring.dev', resourceVersion: '7', annotations }, spec: {} })
  await apply()
  expect(state.writes).toHaveLength(written)
  const kept = written === 0 ? held : '1.2.3'
  expect(state.live?.metadata.annotations).toEqual({ 'mooring.dev/version': kept, 'example.com/own': 'stays' })
})

test('a definition that becomes newer before the write is left unchanged', async () => {
  const { state, apply } = apiServer()
  await apply('2.0.0')
  await apply('1.9.9')
  expect(state.live?.metadata.annotations).toEqual({ 'mooring.dev/version': '2.0.0' })
})

test('a conflicting write reads the definition again', async () => {
  const { state, apply } = apiServer({ metadata: { name: 'plans.mooring.dev', resourceVersion: '7' }, spec: {} })
  state.conflicts = 2
  await apply()
  expect(state.live?.spec).toMatchObject({ names: { plural: 'plans' } })
})

test('an error has the message of the API server', async () => {
  const { apply } = apiServer(undefined, { status: 403, message: 'customresourcedefinitions is forbidden' })
  await expect(apply()).rejects.toMatchObject({
    code: 'crd_refused',
    message: expect.stringContaining('customresourcedefinitions is forbidden') as string,
  })
})
