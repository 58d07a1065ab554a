import { expect, test } from 'vitest'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { createApplier, foreignSpec } from './apply.ts'
import { StatefulSet } from './kinds.ts'
import type { Live } from './live.ts'

type Request = Parameters<KubernetesClient['request']>[0]

const manifest = { metadata: { namespace: 'shared', name: 'pg-1' }, spec: { replicas: 1 } }
const FOREIGN = [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:paused': {} } } }]

/** API server with one object, which is the response to every write; other managers own a part of its spec until it is replaced. */
function stage() {
  const requests: Request[] = []
  let held: unknown
  let others: unknown[] = []
  let live: unknown
  let revision = 0
  let isForbidden = false
  const client = {
    request: (request: Request) => {
      requests.push(request)
      if (request.method === 'PATCH' && isForbidden && others.length > 0)
        return Promise.resolve({ status: 422, body: { kind: 'Status' } })
      if (request.method === 'PUT') others = []
      revision += 1
      const metadata = {
        ...manifest.metadata,
        uid: 'u',
        resourceVersion: `${revision}`,
        creationTimestamp: '2026-01-01T00:00:00Z',
      }
      held = {
        metadata: { ...metadata, managedFields: others },
        spec: { template: { spec: { containers: [] } }, ...manifest.spec },
      }
      return Promise.resolve({ status: 200, body: held })
    },
  } as unknown as KubernetesClient
  return {
    applier: createApplier(client),
    live: { get: () => live, remember: (object: unknown) => void (live = object) } as unknown as Live<typeof StatefulSet>,
    forbid: () => (isForbidden = true),
    sent: () => requests.splice(0).map(({ method }) => method),
    edit: (spec: object) => {
      const was = live as { spec: object }
      live = { ...was, spec: { ...was.spec, ...spec } }
    },
    report: (status: object) => void (live = { ...(live as object), status }),
    remove: () => void (live = undefined),
    meddle: () => void (others = FOREIGN),
  }
}

test('an object is applied once, and again only when it or the manifest has changed', async () => {
  const { applier, live, sent, edit, report } = stage()
  const apply = (desired = manifest) => applier.apply({ kind: StatefulSet, live }, desired)
  await apply()
  expect(sent()).toEqual(['PATCH'])
  report({ readyReplicas: 1 })
  await apply()
  expect(sent()).toEqual([])
  edit({ replicas: 0 })
  await apply()
  expect(sent()).toEqual(['PATCH'])
  await apply({ ...manifest, spec: { replicas: 2 } })
  expect(sent()).toEqual(['PATCH'])
})

test('fields added by other writers are removed by a replacement', async () => {
  const { applier, live, sent, meddle } = stage()
  meddle()
  await applier.apply({ kind: StatefulSet, live }, manifest)
  expect(sent()).toEqual(['PATCH', 'PUT'])
})

test('fields of other writers that an admission policy forbids are removed by a replacement', async () => {
  const { applier, live, sent, meddle, forbid } = stage()
  meddle()
  forbid()
  await applier.apply({ kind: StatefulSet, live }, manifest)
  expect(sent()).toEqual(['PATCH', 'GET', 'PUT'])
})

test('a deleted object is forgotten', async () => {
  const { applier, live, remove } = stage()
  await applier.apply({ kind: StatefulSet, live }, manifest)
  applier.prune()
  expect(applier.size).toBe(1)
  remove()
  applier.prune()
  expect(applier.size).toBe(0)
})

const spec = (fields: object) => ({ 'f:spec': fields })
const by = (manager: string, fieldsV1: object, subresource = '') => ({ manager, operation: 'Update', fieldsV1, subresource })
const mine = by('me', spec({ 'f:replicas': {}, 'f:template': { 'f:spec': { 'f:containers': {} } } }))

test.each([
  { does: 'no other manager has written', entries: [mine], foreign: false },
  {
    does: 'a status was written',
    entries: [mine, by('controller', { 'f:status': { 'f:replicas': {} } }, 'status')],
    foreign: false,
  },
  {
    does: 'labels were written',
    entries: [mine, by('kubectl', { 'f:metadata': { 'f:labels': { 'f:x': {} } } })],
    foreign: false,
  },
  {
    does: 'its pods were to be restarted',
    entries: [by('kubectl', spec({ 'f:template': { 'f:metadata': { 'f:annotations': { '.': {}, 'f:restartedAt': {} } } } }))],
    foreign: false,
  },
  { does: 'it was scaled', entries: [mine, by('kubectl', spec({ 'f:replicas': {} }))], foreign: true },
  {
    does: 'a container was added',
    entries: [mine, by('kubectl', spec({ 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"x"}': { '.': {} } } } } }))],
    foreign: true,
  },
  { does: 'there is no record', entries: undefined, foreign: false },
])('another manager owns a part of the spec when $does: $foreign', ({ entries, foreign }) => {
  expect(foreignSpec(entries, 'me')).toBe(foreign)
})
