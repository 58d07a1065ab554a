import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { instance, testStoreIn, reader } from '../../test/conformance/store/test-store.ts'
import { StoreError, type Store } from '../port.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'

/** State of one object in the model. */
interface Model {
  identifier: string
  host: string | undefined
  label: string | undefined
  held: boolean
  deleting: boolean
  generation: number
}
type State = Map<string, Model>
const ACTS = ['create', 'spec', 'status', 'label', 'unlabel', 'hold', 'release', 'delete', 'stale'] as const
interface Step {
  readonly act: (typeof ACTS)[number]
  readonly name: string
  readonly value: string
}

const finalizer = 'mooring.dev/model'
const values = fc.constantFrom('x', 'y')
const steps = fc.array(fc.record({ act: fc.constantFrom(...ACTS), name: fc.constantFrom('a', 'b', 'c'), value: values }), {
  minLength: 5,
  maxLength: 40,
})

/** Effect of a step on an existing object. */
const effects: Readonly<Record<Step['act'], (object: Model, value: string) => Partial<Model>>> = {
  create: () => ({}),
  spec: ({ identifier, generation }, value) => (identifier === value ? {} : { identifier: value, generation: generation + 1 }),
  status: (_object, value) => ({ host: value }),
  label: (_object, value) => ({ label: value }),
  unlabel: () => ({ label: undefined }),
  hold: () => ({ held: true }),
  release: () => ({ held: false }),
  delete: () => ({ deleting: true }),
  stale: () => ({}),
}
const refusals: Partial<Record<Step['act'], string>> = { create: 'already_exists', stale: 'conflict' }

/** Applies a step to the model. @returns the error code of a rejected step */
function foretell(state: State, { act, name, value }: Step): string | undefined {
  const object = state.get(name)
  if (!object) {
    if (act !== 'create') return 'not_found'
    state.set(name, { identifier: value, host: undefined, label: undefined, held: false, deleting: false, generation: 1 })
    return undefined
  }
  Object.assign(object, effects[act](object, value))
  if (object.deleting && !object.held) state.delete(name)
  return refusals[act]
}

async function perform(store: Store, namespace: string, { act, name, value }: Step): Promise<unknown> {
  const key = { namespace, name }
  const patch = (body: object): Promise<unknown> => store.mergePatch(SharedInstance, key, { ...body })
  const acts = {
    create: () => store.create(SharedInstance, instance(key, { spec: { identifier: value } })),
    spec: () => patch({ spec: { identifier: value } }),
    status: () => store.patchStatus(SharedInstance, key, { host: value }),
    label: () => patch({ metadata: { labels: { on: value } } }),
    unlabel: () => patch({ metadata: { labels: { on: null } } }),
    hold: () => patch({ metadata: { finalizers: [finalizer] } }),
    release: () => patch({ metadata: { finalizers: null } }),
    delete: () => store.delete(SharedInstance, key),
    stale: () => store.mergePatch(SharedInstance, key, { spec: { identifier: 'never' } }, { resourceVersion: '1' }),
  }
  return acts[act]()
}

const codeOf = (error: unknown): string => (error instanceof StoreError ? error.code : String(error))

type Items = Awaited<ReturnType<Store['list']>>['items']
function modelOf(items: Items): [string, Model][] {
  return (items as Awaited<ReturnType<typeof listAll>>['items']).map(({ metadata, spec, status }) => [
    metadata.name,
    {
      identifier: spec.identifier,
      host: status?.host,
      label: metadata.labels?.on,
      held: metadata.finalizers !== undefined,
      deleting: metadata.deletionTimestamp !== undefined,
      generation: metadata.generation,
    },
  ])
}
const listAll = (store: Store, namespace: string, labels?: Record<string, string>) =>
  store.list(SharedInstance, { namespace, labels })

/** Watches from the revision of an earlier list until the object `end` appears, and applies the events to that list. */
async function replay(
  store: Store,
  from: Awaited<ReturnType<typeof listAll>>,
  namespace: string,
  labels?: Record<string, string>,
) {
  const objects = new Map(from.items.map((object) => [object.metadata.name, object]))
  await using watch = reader(store, SharedInstance, { namespace, labels, resourceVersion: from.resourceVersion })
  for (let event = await watch.next(); event.object.metadata.name !== 'end'; event = await watch.next()) {
    const { name } = event.object.metadata
    expect(event.type === 'added').toBe(!objects.has(name))
    if (event.type === 'deleted') objects.delete(name)
    else objects.set(name, event.object)
  }
  return objects
}

test('any sequence of writes has the results of a simple model, and a watch from any revision leads to the state of a list', async () => {
  await using temporary = await openTemporaryStore()
  const { store } = temporary
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      await using place = await testStoreIn({ store, [Symbol.asyncDispose]: () => Promise.resolve() })
      const { namespace } = place
      const state: State = new Map()
      const selections = [undefined, { on: 'x' }]
      const snapshots = []
      for (const step of sequence) {
        for (const labels of selections) snapshots.push({ labels, list: await listAll(store, namespace, labels) })
        const refused = await perform(store, namespace, step).then(() => undefined, codeOf)
        expect(refused).toBe(foretell(state, step))
        const listed = await listAll(store, namespace)
        expect(modelOf(listed.items)).toEqual([...state].sort(([a], [b]) => (a < b ? -1 : 1)))
      }
      const last = await Promise.all(selections.map((labels) => listAll(store, namespace, labels)))
      await store.create(SharedInstance, instance({ namespace, name: 'end' }, { metadata: { labels: { on: 'x' } } }))
      for (const { labels, list } of snapshots) {
        const replayed = await replay(store, list, namespace, labels)
        const expected = last[selections.indexOf(labels)]?.items ?? []
        expect([...replayed.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))).toEqual(expected)
      }
    }),
    { numRuns: 60 },
  )
})
