import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Namespace, RoleBinding } from '../../crds/core.ts'
import type { Kind, Resource } from '../../crds/kind.ts'
import { FINALIZER, labels } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { type Cache, createCacheSet } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import { openTemporaryStore, createConflictingStore } from '../../test/support/store/temporary-store.ts'
import type { Store } from '../../store/port.ts'
import { REGION_ID } from '../../test/builders/resources.ts'
import { createReporter } from '../reporter.ts'
import { createController } from '../runtime/controller.ts'
import { createNamespaceReconciler } from './reconciler.ts'
import { namespaceWatches } from './watches.ts'

const NAME = 'acme--prod'
const LABELS = { [labels.organization]: 'acme', [labels.namespace]: 'prod' }
const spec = { organization: 'acme', namespace: 'prod' }

interface Options {
  readonly serviceAccounts?: boolean
  readonly wrap?: (store: Store) => Store
}

/** Reconciler over a real store. */
async function start({ serviceAccounts = false, wrap = (store) => store }: Options = {}) {
  const { store, ...temporary } = await openTemporaryStore()
  const seen = wrap(store)
  const set = createCacheSet({ store: seen, onError: () => undefined })
  const caches = {
    tenantNamespaces: set.cached(TenantNamespace),
    namespaces: set.cached(Namespace),
    roleBindings: set.cached(RoleBinding),
    organizations: set.cached(Organization),
    instances: set.cached(SharedInstance),
  }
  let passes = 0
  const controller = createController({
    ...{ name: 'namespace', concurrency: 2, sources: namespaceWatches(caches), log: pino({ level: 'silent' }) },
    onResult: () => (passes += 1),
    reconcile: createNamespaceReconciler({
      ...{ ...caches, store: seen, serviceAccounts },
      report: createReporter({ store: seen, now: () => new Date() }),
    }),
  })
  const stop = new AbortController()
  const work = Promise.all([set.run(stop.signal), controller.run(stop.signal)])
  await set.synced()

  function until<K extends Kind>(cache: Cache<K>, desired: (object: Resource<K> | undefined) => boolean): Promise<object> {
    return cache.waitFor({ name: NAME }, (object) => (desired(object) ? { done: true } : undefined), stop.signal)
  }
  return {
    store,
    caches,
    passes: () => passes,
    /** Waits until the TenantNamespace has this reason. */
    reason: (reason: string) =>
      until(caches.tenantNamespaces, (now) => now !== undefined && conditionOf(now, 'Ready')?.reason === reason),
    gone: (kind: 'tenantNamespaces' | 'namespaces') => until<Kind>(caches[kind], (now) => now === undefined),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await work
      await temporary[Symbol.asyncDispose]()
    },
  }
}

const get = (store: Store) => store.get(TenantNamespace, { name: NAME })
const bindingsIn = async (store: Store) =>
  (await store.list(RoleBinding, { namespace: NAME })).items.map(({ metadata }) => metadata.name)

test('a TenantNamespace that kubectl made becomes a labelled Namespace with its roles and its organization', async () => {
  await using at = await start({ serviceAccounts: true })
  await at.store.create(TenantNamespace, { metadata: { name: NAME }, spec: { ...spec, displayName: 'Production' } })
  await at.reason('Bound')
  const namespace = await at.store.get(Namespace, { name: NAME })
  expect(namespace?.metadata).toMatchObject({ labels: LABELS, annotations: { 'mooring.dev/display-name': 'Production' } })
  expect(await bindingsIn(at.store)).toEqual([
    'mooring-admin',
    'mooring-apiserver',
    'mooring-editor',
    'mooring-operator',
    'mooring-viewer',
  ])
  expect((await at.store.get(Organization, { name: 'acme' }))?.spec).toEqual({ name: 'acme' })
  const tenant = await get(at.store)
  expect(tenant?.metadata.finalizers).toEqual([FINALIZER])
  expect(tenant?.status?.namespaceUid).toBe(namespace?.metadata.uid)
})

test('a conflict on every write only delays it', async () => {
  await using at = await start({ wrap: (store) => createConflictingStore(store).store })
  await at.store.create(TenantNamespace, { metadata: { name: NAME }, spec })
  await at.reason('Bound')
  await at.store.delete(TenantNamespace, { name: NAME })
  await at.gone('tenantNamespaces')
  expect(await at.store.get(Namespace, { name: NAME })).toBeUndefined()
})

test('a deleted TenantNamespace is removed after its Namespace and all objects in it', async () => {
  await using at = await start()
  await at.store.create(TenantNamespace, { metadata: { name: NAME, finalizers: [FINALIZER] }, spec })
  await at.reason('Bound')
  const instance = { namespace: NAME, name: 'a' }
  await at.store.create(SharedInstance, {
    metadata: { ...instance, finalizers: [FINALIZER] },
    spec: { identifier: 'a', region: REGION_ID, motor: 'postgresql-15.4.0' },
  })
  await at.store.delete(TenantNamespace, { name: NAME })
  await at.reason('Deleting')
  const blocked = {
    type: 'Ready',
    status: 'False',
    reason: 'CleanupBlocked',
    message: 'no answer',
    lastTransitionTime: '',
  } as const
  await at.store.patchStatus(SharedInstance, instance, { conditions: [blocked] })
  await at.reason('CleanupBlocked')
  expect((await at.store.get(SharedInstance, instance))?.metadata.deletionTimestamp).toBeDefined()
  await at.store.mergePatch(SharedInstance, instance, { metadata: { finalizers: null } })
  await at.gone('tenantNamespaces')
  expect(await at.store.get(Namespace, { name: NAME })).toBeUndefined()
})

test('a labelled Namespace is adopted with the annotations of its POST', async () => {
  await using at = await start()
  const made = await at.store.create(Namespace, {
    metadata: {
      name: NAME,
      labels: { ...LABELS, 'mooring.dev/idempotency-key': 'k', team: 'blue' },
      annotations: {
        'mooring.dev/display-name': 'Production',
        'mooring.dev/created-by': 'local:ann',
        'mooring.dev/request-hash': 'h',
      },
    },
  })
  await at.reason('Bound')
  expect(await get(at.store)).toMatchObject({
    metadata: {
      labels: { 'mooring.dev/idempotency-key': 'k' },
      annotations: { 'mooring.dev/created-by': 'local:ann', 'mooring.dev/request-hash': 'h' },
      finalizers: [FINALIZER],
    },
    spec: { ...spec, displayName: 'Production' },
    status: { namespaceUid: made.metadata.uid },
  })
  expect(await at.store.get(Namespace, { name: NAME })).toEqual(made)
})

test('a deleted Namespace deletes its TenantNamespace, and neither comes back', async () => {
  await using at = await start()
  await at.store.create(TenantNamespace, { metadata: { name: NAME }, spec })
  await at.reason('Bound')
  await at.store.delete(Namespace, { name: NAME })
  await at.gone('tenantNamespaces')
  await at.gone('namespaces')
  const before = at.passes()
  // Earlier events of the caches have been reconciled when the next change has.
  await at.store.create(Namespace, { metadata: { name: 'other' } })
  await expect.poll(at.passes).toBeGreaterThan(before)
  expect([await get(at.store), await at.store.get(Namespace, { name: NAME })]).toEqual([undefined, undefined])
})

test('a Namespace of the name without our labels stays unchanged, also when the TenantNamespace is deleted', async () => {
  await using at = await start()
  const foreign = await at.store.create(Namespace, { metadata: { name: NAME } })
  await at.store.create(TenantNamespace, { metadata: { name: NAME }, spec })
  await at.reason('NamespaceTaken')
  expect(await bindingsIn(at.store)).toEqual([])
  await at.store.delete(TenantNamespace, { name: NAME })
  await at.gone('tenantNamespaces')
  expect(await at.store.get(Namespace, { name: NAME })).toEqual(foreign)
})

test('a deleted RoleBinding, label or organization is restored', async () => {
  await using at = await start()
  await at.store.create(TenantNamespace, { metadata: { name: NAME }, spec })
  await at.reason('Bound')
  await at.store.delete(RoleBinding, { namespace: NAME, name: 'mooring-editor' })
  await at.store.mergePatch(Namespace, { name: NAME }, { metadata: { labels: { [labels.organization]: null } } })
  await at.store.delete(Organization, { name: 'acme' })
  await expect.poll(() => bindingsIn(at.store)).toContain('mooring-editor')
  await expect.poll(async () => (await at.store.get(Namespace, { name: NAME }))?.metadata.labels).toEqual(LABELS)
  await expect.poll(() => at.store.get(Organization, { name: 'acme' })).toBeDefined()
})
