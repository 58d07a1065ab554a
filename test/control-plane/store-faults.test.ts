import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Namespace } from '../../crds/core.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { type Cache, createCache } from '../../store/cache.ts'
import { instance, expectStoreError, unique } from '../conformance/store/test-store.ts'
import { StoreError, type Store } from '../../store/port.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { type ControlPlane, startControlPlane, eventually } from './support/control-plane.ts'
import { onlyInFull } from '../support/scope.ts'
import { startSilentProxy } from './support/silent-proxy.ts'

let plane: ControlPlane
let direct: KubernetesStore
const namespace = unique()
beforeAll(async () => {
  plane = await startControlPlane()
  direct = plane.store()
  await direct.create(Namespace, { metadata: { name: namespace } })
})
afterAll(() => plane[Symbol.asyncDispose]())

const make = (name: string, store: Store = direct) => store.create(SharedInstance, instance({ namespace, name }))

interface Following extends AsyncDisposable {
  readonly cache: Cache<typeof SharedInstance>
  readonly codes: string[]
}

/** Cache of the namespace that runs until disposed, and the codes of its errors. */
async function following(store: Store): Promise<Following> {
  const stop = new AbortController()
  const codes: string[] = []
  const cache = createCache({
    store,
    kind: SharedInstance,
    scope: { namespace },
    onError: (error) => codes.push(error instanceof StoreError ? error.code : String(error)),
  })
  const ended = cache.run(stop.signal)
  await cache.synced()
  return {
    cache,
    codes,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

const versionsIn = (cache: Cache<typeof SharedInstance>): string[] =>
  cache
    .list()
    .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
    .sort()

/** Resolves when the cache has exactly the content of the store. */
async function caughtUp({ cache }: Following): Promise<void> {
  const { items } = await direct.list(SharedInstance, { namespace })
  const wanted = items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).sort()
  await eventually(() => JSON.stringify(versionsIn(cache)) === JSON.stringify(wanted))
}

describe('an API server that restarts', () => {
  test('is unavailable to callers after SIGKILL, and the cache misses no change', async () => {
    await make('stays')
    await make('goes')
    await using follower = await following(direct)
    await plane.apiServer.stop('SIGKILL')
    expect((await expectStoreError(direct.get(SharedInstance, { namespace, name: 'stays' }))).code).toBe('unavailable')
    expect((await expectStoreError(make('late'))).code).toBe('unavailable')
    await plane.apiServer.start()
    await plane.ready()
    await direct.delete(SharedInstance, { namespace, name: 'goes' })
    await direct.patchStatus(SharedInstance, { namespace, name: 'stays' }, { host: 'h' })
    await make('new')
    await caughtUp(follower)
    expect(follower.codes).toContain('unavailable')
  })

  // It takes 20 s: the API server waits for the ends of its watches.
  test.each(onlyInFull('SIGTERM'))(
    'answers reads or is unavailable after %s, and answers again after the start',
    async (signal) => {
      await make('read')
      const reading = new AbortController()
      const outcomes = (async () => {
        while (!reading.signal.aborted) await direct.get(SharedInstance, { namespace, name: 'read' }).catch(onlyUnavailable)
      })()
      await plane.apiServer.stop(signal)
      await plane.apiServer.start()
      await plane.ready()
      expect((await direct.get(SharedInstance, { namespace, name: 'read' }))?.metadata.name).toBe('read')
      reading.abort()
      await outcomes
    },
  )
})

function onlyUnavailable(error: unknown): undefined {
  expect(error).toMatchObject({ code: 'unavailable' })
}

describe('a connection that drops packets', () => {
  test('is detected and replaced, and the cache continues', async () => {
    await using proxy = await startSilentProxy(plane.port)
    const store = plane.store({ config: plane.config(proxy.server), pingMs: 1_000 })
    await using follower = await following(store)
    proxy.silence('existing')
    await make('behind-the-silence')
    await caughtUp(follower)
    expect(follower.codes).toEqual(['unavailable'])
  })

  test('does not block a caller: a read is repeated on another connection, a write is unavailable', async () => {
    await using proxy = await startSilentProxy(plane.port)
    const store = plane.store({ config: plane.config(proxy.server), pingMs: 1_000 })
    await make('read-again')
    expect(await store.get(SharedInstance, { namespace, name: 'nothing' })).toBeUndefined()
    proxy.silence('existing')
    expect((await store.get(SharedInstance, { namespace, name: 'read-again' }))?.metadata.name).toBe('read-again')
    proxy.silence('existing')
    expect((await expectStoreError(make('written', store))).code).toBe('unavailable')
    expect((await make('written-again', store)).metadata.name).toBe('written-again')
  })

  test('makes calls unavailable after their timeout when no other connection is possible', async () => {
    await using proxy = await startSilentProxy(plane.port)
    const store = plane.store({ config: plane.config(proxy.server), pingMs: 1_000, connectMs: 1_000, timeoutMs: 3_000 })
    await store.list(SharedInstance, { namespace })
    proxy.silence('all')
    expect((await expectStoreError(store.list(SharedInstance, { namespace }))).code).toBe('unavailable')
    const watch = store.watch(SharedInstance, { resourceVersion: '1', signal: new AbortController().signal })
    expect((await expectStoreError(Array.fromAsync(watch))).code).toBe('unavailable')
  })
})

test('a cache that was disconnected during a compaction lists again and misses no change', async () => {
  await using proxy = await startSilentProxy(plane.port)
  const store = plane.store({ config: plane.config(proxy.server), pingMs: 1_000, connectMs: 1_000 })
  await make('gone-meanwhile')
  await make('changed-meanwhile')
  await using follower = await following(store)
  proxy.silence('all')
  await direct.delete(SharedInstance, { namespace, name: 'gone-meanwhile' })
  await direct.patchStatus(SharedInstance, { namespace, name: 'changed-meanwhile' }, { host: 'h' })
  await make('new-meanwhile')
  await plane.compact()
  proxy.restore()
  await caughtUp(follower)
  expect(follower.codes).toContain('gone')
})

test('a handler that throws blocks neither other handlers nor the watch', async () => {
  await using follower = await following(direct)
  const seen: string[] = []
  follower.cache.onChange(() => {
    throw new Error('broken handler')
  })
  follower.cache.onChange(({ name }) => seen.push(name))
  await make('first-for-handlers')
  await make('second-for-handlers')
  await eventually(() => seen.includes('first-for-handlers') && seen.includes('second-for-handlers'))
  expect(new Set(follower.codes)).toEqual(new Set(['Error: broken handler']))
})

describe('admission', () => {
  const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
  const webhook = {
    metadata: { name: 'down.mooring.dev' },
    webhooks: [
      {
        name: 'down.mooring.dev',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: ['mooring.dev'], apiVersions: ['*'], operations: ['CREATE'], resources: ['sharedinstances'] }],
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  }

  test('an unreachable webhook with failurePolicy Fail makes writes unavailable, and the cause names the webhook', async () => {
    await direct.client.request({ method: 'POST', path: configurations, body: webhook })
    let serial = 0
    let refusal: StoreError | undefined
    // The configuration takes effect some time after its creation.
    await eventually(async () => {
      refusal = await make(`before-webhook-${(serial += 1)}`).then(() => undefined, asStoreError)
      return refusal !== undefined
    })
    expect(refusal?.code).toBe('unavailable')
    expect(refusal?.cause).toMatchObject({ message: expect.stringContaining('down.mooring.dev') as string })
    await direct.client.request({ method: 'DELETE', path: `${configurations}/down.mooring.dev` })
    await eventually(() =>
      make(`after-webhook-${(serial += 1)}`).then(
        () => true,
        () => false,
      ),
    )
  })
})

const asStoreError = (error: unknown): StoreError => {
  if (error instanceof StoreError) return error
  throw error
}

describe('twenty concurrent writers', () => {
  const writers = Array.from({ length: 20 }, (_, index) => index)

  test('all succeed with patches without a revision', async () => {
    const key = { namespace, name: 'stormy' }
    const { uid } = (await make(key.name)).metadata
    await Promise.all(writers.map((n) => direct.mergePatch(SharedInstance, key, { metadata: { labels: { [`l${n}`]: 'x' } } })))
    await Promise.all(
      writers.map((n) => direct.mergePatch(SharedInstance, key, { metadata: { labels: { [`u${n}`]: 'x' } } }, { uid })),
    )
    await Promise.all(writers.map((n) => direct.patchStatus(SharedInstance, key, { port: n + 1 }, { uid })))
    expect(Object.keys((await direct.get(SharedInstance, key))?.metadata.labels ?? {})).toHaveLength(40)
  })

  test('succeed exactly once with patches of the same revision', async () => {
    const key = { namespace, name: 'stormy-revision' }
    const { resourceVersion } = (await make(key.name)).metadata
    const patches = writers.map((n) => direct.patchStatus(SharedInstance, key, { port: n + 1 }, { resourceVersion }))
    const codes = (await Promise.allSettled(patches)).flatMap((each) =>
      each.status === 'rejected' ? [asStoreError(each.reason).code] : [],
    )
    expect(codes).toEqual(Array.from({ length: 19 }, () => 'conflict'))
  })
})

test('the store uses a token that was replaced in the pod', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-service-account-'))
  const { token, caFile } = plane
  await copyFile(caFile, join(directory, 'ca.crt'))
  await writeFile(join(directory, 'token'), 'outdated\n')
  const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(plane.port) }
  const store = plane.store({ config: await loadClusterConfig(env, directory) })
  expect((await expectStoreError(store.list(SharedInstance, { namespace }))).code).toBe('unavailable')
  await writeFile(join(directory, 'token'), `${token}\n`)
  expect((await store.list(SharedInstance, { namespace })).resourceVersion).toMatch(/^\d+$/)
  await rm(directory, { recursive: true })
})
