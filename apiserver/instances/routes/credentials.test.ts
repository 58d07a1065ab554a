import { afterEach, describe, expect, test, vi } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { annotations } from '../../../crds/names.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { type Key, keyOf, type Store } from '../../../store/port.ts'
import {
  type InstanceApi,
  instanceBody,
  instanceOf,
  keyed,
  startInstanceApi,
  stored,
} from '../../../test/support/api/instance-api.ts'
import { SOON } from '../../../test/support/patience.ts'
import { INSTANCE_LIMITS } from '../instance-deps.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** API with one instance, which the simulated operator leaves as it is. */
interface Bench extends AsyncDisposable {
  readonly api: InstanceApi
  readonly instance: SharedInstance
  /** Called before each read of a Secret by a route. */
  readonly onRead: ReturnType<typeof vi.fn<() => Promise<unknown>>>
  /** Changes the Secret as the operator or a tenant does. */
  patchSecret(id: string | null, version: string | null, password: string): Promise<unknown>
  /** Writes the status that follows when the engine has the password. */
  putInForce(passwordId: string | null): Promise<unknown>
}

const post = (api: InstanceApi) => api.call('POST /v1/instances', { body: instanceBody, ...keyed('k') })
const base64 = (text: string) => Buffer.from(text).toString('base64')

async function startBench(): Promise<Bench> {
  await using opened = new AsyncDisposableStack()
  const onRead: Bench['onRead'] = vi.fn(() => Promise.resolve())
  const between = (store: Store): Store => ({
    ...store,
    async get<K extends Kind>(kind: K, key: Key) {
      if (kind.kind === Secret.kind) await onRead()
      return store.get(kind, key)
    },
  })
  const api = opened.use(await startInstanceApi({ between }))
  expect((await post(api)).status).toBe(201)
  api.operator.pause()
  onRead.mockClear()
  const [instance] = await stored(api)
  if (!instance) throw new Error('there is no instance')
  const kept = opened.move()
  return {
    ...{ api, instance, onRead },
    patchSecret: (id, version, password) =>
      api.store.mergePatch(Secret, secretOf(instance), {
        metadata: { annotations: { [annotations.passwordId]: id, [annotations.passwordVersion]: version } },
        data: { password: base64(password), uri: base64(`postgresql://u:${password}@127.0.0.1:15432/n`) },
      }),
    putInForce: (passwordId) => api.store.patchStatus(SharedInstance, keyOf(instance), { passwordId }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

const secretOf = (instance: SharedInstance): Key => ({ ...keyOf(instance), name: instance.status?.secretRef?.name ?? '' })

const { identifier, ...ensureBody } = instanceBody
const OLD_ID = '00000000-0000-4000-8000-000000000001'
const NEW_ID = '00000000-0000-4000-8000-000000000002'

const read = ({ api, instance }: Bench) => api.call(`GET /v1/instances/${instance.metadata.uid}?include=credentials`)

describe.each([
  { what: 'a repeated POST', call: ({ api }: Bench) => post(api) },
  {
    what: 'a repeated PUT',
    call: ({ api }: Bench) => api.call(`PUT /v1/instances/by-identifier/${identifier}`, { body: ensureBody }),
  },
  { what: 'a GET with credentials', call: read },
])('$what', ({ call }) => {
  test('waits until the password in the Secret is in force', async () => {
    await using bench = await startBench()
    const { api, instance, onRead } = bench
    await bench.patchSecret(NEW_ID, '1', 'redrawn')
    const isAnswered = vi.fn()
    const answering = call(bench).finally(isAnswered)
    await expect.poll(() => onRead.mock.calls.length, SOON).toBe(1)
    // A change that says nothing about the password.
    await api.store.patchStatus(SharedInstance, keyOf(instance), { engineVersion: '15.5' })
    await expect.poll(() => onRead.mock.calls.length, SOON).toBe(2)
    // Later requests are answered meanwhile.
    for (let index = 0; index < 3; index++) await api.call(`GET /v1/instances/${instance.metadata.uid}`)
    expect(isAnswered).not.toHaveBeenCalled()
    await bench.putInForce(NEW_ID)
    expect(instanceOf(await answering)).toMatchObject({ password: 'redrawn', engineVersion: '15.5' })
  })

  test('is 503 with Retry-After when its time is used up', async () => {
    await using bench = await startBench()
    await bench.patchSecret(NEW_ID, '1', 'redrawn')
    const now = performance.now.bind(performance)
    bench.onRead.mockImplementation(() => {
      vi.spyOn(performance, 'now').mockImplementation(() => now() + INSTANCE_LIMITS.changeMs)
      return Promise.resolve()
    })
    const answer = await call(bench)
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
  })
})

test.each([
  { what: 'the next version', id: NEW_ID, version: '2' },
  { what: 'the next version of a program without ids', id: OLD_ID, version: '2' },
  { what: 'another id', id: NEW_ID, version: '1' },
  { what: 'no id', id: null, version: '1' },
  { what: 'no version', id: OLD_ID, version: null },
])('a password of $what is not answered', async ({ id, version }) => {
  await using bench = await startBench()
  await bench.patchSecret(id, version, 'another')
  const answering = read(bench)
  await expect.poll(() => bench.onRead.mock.calls.length, SOON).toBe(1)
  await bench.patchSecret(OLD_ID, '1', 'in-force')
  await bench.api.store.patchStatus(SharedInstance, keyOf(bench.instance), { engineVersion: '15.5' })
  expect(instanceOf(await answering).password).toBe('in-force')
})

test('a status that comes with the Secret while it is read is not missed', async () => {
  await using bench = await startBench()
  const { api, instance, onRead } = bench
  onRead.mockImplementationOnce(async () => {
    await bench.patchSecret(NEW_ID, '1', 'redrawn')
    await bench.putInForce(NEW_ID)
    await api.untilInstance(keyOf(instance), (now) => now?.status?.passwordId === NEW_ID)
  })
  expect(instanceOf(await read(bench)).password).toBe('redrawn')
  expect(onRead).toHaveBeenCalledTimes(2)
})

test('a missing Secret is awaited', async () => {
  await using bench = await startBench()
  const { api, instance, onRead } = bench
  const secret = await api.store.get(Secret, secretOf(instance))
  if (!secret) throw new Error('there is no Secret')
  await api.store.delete(Secret, secretOf(instance))
  const answering = read(bench)
  await expect.poll(() => onRead.mock.calls.length, SOON).toBe(1)
  const { namespace = '', name } = secret.metadata
  const notes = { [annotations.passwordId]: NEW_ID, [annotations.passwordVersion]: '1' }
  await api.store.create(Secret, { metadata: { namespace, name, annotations: notes }, type: secret.type, data: secret.data })
  await bench.putInForce(NEW_ID)
  expect((await answering).status).toBe(200)
})

test('an instance from before passwords had ids is answered', async () => {
  await using bench = await startBench()
  await bench.putInForce(null)
  await bench.patchSecret(null, '1', 'old')
  expect(instanceOf(await read(bench)).password).toBe('old')
})

test('a GET that waits for a password ends with 409 when the instance is deleted', async () => {
  await using bench = await startBench()
  await bench.patchSecret(NEW_ID, '1', 'redrawn')
  const answering = read(bench)
  await expect.poll(() => bench.onRead.mock.calls.length, SOON).toBe(1)
  await bench.api.store.delete(SharedInstance, keyOf(bench.instance))
  expect(await answering).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
})

test('a GET with credentials of an instance without a database is 503 at once', async () => {
  await using bench = await startBench()
  const metadata = { name: 'applied', namespace: 'acme--prod' }
  const { uid } = (await bench.api.store.create(SharedInstance, { metadata, spec: instanceBody })).metadata
  await bench.api.untilInstance(metadata, (now) => now !== undefined)
  expect((await bench.api.call(`GET /v1/instances/${uid}?include=credentials`)).status).toBe(503)
})
