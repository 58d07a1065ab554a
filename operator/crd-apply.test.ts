import { pino } from 'pino'
import { expect, test } from 'vitest'
import { customResourceDefinition } from '../crds/definition.ts'
import { Plan } from '../crds/plan.ts'
import type { ApiRequest, KubernetesClient } from '../store/kubernetes/client.ts'
import { applyCrds } from './crd-apply.ts'

interface Live {
  metadata: { name: string; resourceVersion: string }
  spec: object
  status?: { conditions: { type: string; status: string }[] | null }
}

/** As much of an API server as definitions need: it fills in a default, counts revisions, and serves a definition from its second look on. */
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
  const client: Pick<KubernetesClient, 'request'> = {
    request(request) {
      if (request.method === 'GET') return Promise.resolve(state.live ? answer(200) : { status: 404, body: {} })
      state.writes.push(request)
      if (refuse) return Promise.resolve({ status: refuse.status, body: { message: refuse.message } })
      if (state.conflicts-- > 0) return Promise.resolve({ status: 409, body: {} })
      const { metadata, spec } = request.body as Live
      const filled = { conversion: { strategy: 'None' }, ...spec }
      if (JSON.stringify(filled) !== JSON.stringify(state.live?.spec)) {
        const revision = Number(state.live?.metadata.resourceVersion ?? 0) + 1
        state.live = {
          metadata: { name: metadata.name, resourceVersion: `${revision}` },
          spec: filled,
          status: { conditions: null },
        }
      }
      return Promise.resolve(answer(200))
    },
  }
  const apply = () => {
    const signal = new AbortController().signal
    return applyCrds({ client: client as KubernetesClient, log: pino({ level: 'silent' }), kinds: [Plan] }, signal)
  }
  return { state, apply }
}

test('a definition that is missing is made, and waited for until it is served', async () => {
  const { state, apply } = apiServer()
  await apply()
  expect(state.writes.map(({ method }) => method)).toEqual(['POST'])
  expect(state.live?.spec).toMatchObject({ names: { plural: 'plans' } })
})

test('an older one is replaced whole, so that a rule of it which is no more does not stay; what the server filled in does', async () => {
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

test('the same again changes nothing', async () => {
  const { state, apply } = apiServer()
  await apply()
  const revision = state.live?.metadata.resourceVersion
  await apply()
  expect(state.live?.metadata.resourceVersion).toBe(revision)
})

test('whoever is second to write looks again', async () => {
  const { state, apply } = apiServer({ metadata: { name: 'plans.mooring.dev', resourceVersion: '7' }, spec: {} })
  state.conflicts = 2
  await apply()
  expect(state.live?.spec).toMatchObject({ names: { plural: 'plans' } })
})

test('a refusal is told in the words of the API server', async () => {
  const { apply } = apiServer(undefined, { status: 403, message: 'customresourcedefinitions is forbidden' })
  await expect(apply()).rejects.toMatchObject({
    code: 'crd_refused',
    message: expect.stringContaining('customresourcedefinitions is forbidden') as string,
  })
})
