import { describe, expect, test } from 'vitest'
import { Secret } from '../../../crds/core.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { instance, type Open, openTestStore, expectStoreError, reader } from './test-store.ts'

function patches(open: Open): void {
  test('a merge patch replaces whole lists, and null removes a field', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const metadata = { labels: { a: '1', b: '2' }, annotations: { c: '3' }, finalizers: ['mooring.dev/x', 'mooring.dev/y'] }
    await at.store.create(SharedInstance, instance(key, { metadata, spec: { expiresAt: '2100-01-01T00:00:00Z' } }))
    const patch = {
      metadata: { labels: { a: null, d: '4' }, annotations: null, finalizers: ['mooring.dev/y'] },
      spec: { expiresAt: null, identifier: 'patched' },
    }
    const patched = await at.store.mergePatch(SharedInstance, key, patch)
    expect(patched.metadata).toMatchObject({ labels: { b: '2', d: '4' }, finalizers: ['mooring.dev/y'] })
    expect(patched.metadata.annotations ?? {}).toEqual({})
    expect(patched.spec).toMatchObject({ identifier: 'patched', motor: 'postgresql-15.4.0' })
    expect(patched.spec).not.toHaveProperty('expiresAt')
    await at.store.mergePatch(SharedInstance, key, { metadata: { finalizers: null } })
  })

  test('removing a field with a default restores the default', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key, { spec: { enabled: false } }))
    expect((await at.store.mergePatch(SharedInstance, key, { spec: { enabled: null } })).spec.enabled).toBe(true)
  })

  test('replace replaces the whole object', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key, { metadata: { labels: { a: '1' } } }))
    const metadata = { ...made.metadata, labels: {} }
    const replaced = await at.store.replace(SharedInstance, { ...made, metadata, spec: { ...made.spec, identifier: 'new' } })
    expect(replaced.metadata.labels ?? {}).toEqual({})
    expect(replaced.spec.identifier).toBe('new')
    expect(replaced.metadata).toMatchObject({ uid: made.metadata.uid, creationTimestamp: made.metadata.creationTimestamp })
  })

  test('a write without a change leaves the resourceVersion and emits no event', async () => {
    await using at = await openTestStore(open)
    const { store, namespace } = at
    const key = { namespace, name: 'a' }
    await store.create(SharedInstance, instance(key, { metadata: { labels: { a: '1' } } }))
    const made = await store.patchStatus(SharedInstance, key, { host: 'h' })
    await using watch = reader(store, SharedInstance, { namespace, resourceVersion: made.metadata.resourceVersion })
    expect(await store.mergePatch(SharedInstance, key, {})).toEqual(made)
    expect(await store.mergePatch(SharedInstance, key, { metadata: { labels: { a: '1' } }, spec: { enabled: true } })).toEqual(
      made,
    )
    expect(await store.patchStatus(SharedInstance, key, { host: 'h', port: null })).toEqual(made)
    expect(await store.replace(SharedInstance, made)).toEqual(made)
    const changed = await store.mergePatch(SharedInstance, key, { spec: { identifier: 'sentinel' } })
    expect((await watch.next()).object).toEqual(changed)
  })

  test('generation increases when the spec changes, and only then', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const generations = [
      await at.store.create(SharedInstance, instance(key)),
      await at.store.mergePatch(SharedInstance, key, { metadata: { labels: { a: '1' } } }),
      await at.store.patchStatus(SharedInstance, key, { host: 'h' }),
      await at.store.mergePatch(SharedInstance, key, { spec: { identifier: 'x' } }),
      await at.store.mergePatch(SharedInstance, key, { spec: { identifier: 'x' } }),
    ].map(({ metadata }) => metadata.generation)
    expect(generations).toEqual([1, 1, 1, 2, 2])
  })
}

function status(open: Open): void {
  test('create, replace and mergePatch ignore status', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const forged = { status: { host: 'forged' } }
    const made = await at.store.create(SharedInstance, { ...instance(key), ...forged })
    expect(made.status?.host).toBeUndefined()
    const real = await at.store.patchStatus(SharedInstance, key, { host: 'real', port: 5432 })
    await at.store.mergePatch(SharedInstance, key, { ...forged, spec: { identifier: 'x' } })
    const current = await at.store.replace(SharedInstance, {
      ...real,
      ...forged,
      metadata: { ...real.metadata, resourceVersion: (await at.store.get(SharedInstance, key))?.metadata.resourceVersion ?? '' },
    })
    expect(current.status).toEqual({ host: 'real', port: 5432 })
    expect(current.spec.identifier).toBe('conformance')
  })

  test('patchStatus merges into the status and changes nothing else', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key, { metadata: { labels: { a: '1' } } }))
    await at.store.patchStatus(SharedInstance, key, { host: 'h', port: 1, serverRef: { name: 's' } })
    const patched = await at.store.patchStatus(SharedInstance, key, { port: null, user: 'u', serverRef: undefined })
    expect(patched.status).toEqual({ host: 'h', user: 'u', serverRef: { name: 's' } })
    expect(patched.spec).toEqual(made.spec)
    expect(patched.metadata).toEqual({ ...made.metadata, resourceVersion: patched.metadata.resourceVersion })
  })

  test('the list of conditions is replaced as a whole', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key))
    const condition = { status: 'True', reason: 'Claimed', message: '', lastTransitionTime: '2030-01-01T00:00:00Z' } as const
    const conditions = ['One', 'Two'].map((type) => ({ ...condition, type }))
    await at.store.patchStatus(SharedInstance, key, { conditions })
    const patched = await at.store.patchStatus(SharedInstance, key, { conditions: conditions.slice(1) })
    expect(patched.status?.conditions).toEqual(conditions.slice(1))
  })
}

function validation(open: Open): void {
  const fieldsOf = async (promise: Promise<unknown>): Promise<string[]> => {
    const { code, fields } = await expectStoreError(promise)
    expect(code).toBe('invalid')
    return fields.map(({ field }) => field)
  }

  test('an unknown field at any depth is rejected by name, and nothing is stored', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const spec = { ingressIpWhitelist: [], templateRef: { name: 'a', nmae: 'b' } }
    const fields = await fieldsOf(at.store.create(SharedInstance, instance(key, { spec })))
    expect(fields).toEqual(expect.arrayContaining(['spec.ingressIpWhitelist', 'spec.templateRef.nmae']))
    expect(await at.store.get(SharedInstance, key)).toBeUndefined()
  })

  test('the error names all invalid values', async () => {
    await using at = await openTestStore(open)
    const wrong = { motor: 'oracle-1', enabled: 'yes', passwordVersion: 0 }
    const draft = instance({ namespace: at.namespace, name: 'a' }, { spec: wrong as never })
    const fields = await fieldsOf(at.store.create(SharedInstance, draft))
    expect(fields).toEqual(expect.arrayContaining(['spec.motor', 'spec.enabled', 'spec.passwordVersion']))
  })

  test('every kind of write is validated', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    const made = await at.store.create(SharedInstance, instance(key))
    const replacing = at.store.replace(SharedInstance, { ...made, spec: { ...made.spec, identifier: '' } })
    expect(await fieldsOf(replacing)).toContain('spec.identifier')
    expect(await fieldsOf(at.store.mergePatch(SharedInstance, key, { spec: { typo: 1 } }))).toContain('spec.typo')
    expect(await fieldsOf(at.store.patchStatus(SharedInstance, key, { port: 65_536 }))).toContain('status.port')
    expect(await at.store.get(SharedInstance, key)).toEqual(made)
  })

  test.each([
    { does: 'changed', patch: { motor: 'mysql-8.0.29' }, field: 'spec.motor' },
    { does: 'added', patch: { templateRef: { name: 't' } }, field: 'spec.templateRef' },
  ])('an immutable field cannot be $does', async ({ patch, field }) => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key))
    expect(await fieldsOf(at.store.mergePatch(SharedInstance, key, { spec: patch }))).toEqual([field])
  })

  test('an immutable field cannot be removed', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(SharedInstance, instance(key, { spec: { templateRef: { name: 't' } } }))
    expect(await fieldsOf(at.store.mergePatch(SharedInstance, key, { spec: { templateRef: null } }))).toEqual([
      'spec.templateRef',
    ])
  })

  test('immutable fields of Kubernetes’ own kinds cannot be changed', async () => {
    await using at = await openTestStore(open)
    const key = { namespace: at.namespace, name: 'a' }
    await at.store.create(Secret, { metadata: key })
    expect(await fieldsOf(at.store.mergePatch(Secret, key, { type: 'mooring.dev/other' }))).toEqual(['type'])
  })

  test.each([
    { what: 'name', metadata: { name: 'Upper_Case' }, field: 'metadata.name' },
    { what: 'label', metadata: { labels: { a: 'not a value' } }, field: 'metadata.labels' },
    { what: 'annotation', metadata: { annotations: { 'not a name': 'x' } }, field: 'metadata.annotations' },
    { what: 'size of annotations', metadata: { annotations: { a: 'x'.repeat(256 * 1024) } }, field: 'metadata.annotations' },
  ])('a $what that Kubernetes rejects is rejected', async ({ metadata, field }) => {
    await using at = await openTestStore(open)
    const draft = instance({ namespace: at.namespace, name: 'a' }, { metadata })
    const fields = await fieldsOf(at.store.create(SharedInstance, draft))
    expect(fields.every((each) => each.startsWith(field))).toBe(true)
  })
}

/** Clauses about the effect of a write on an object, and about rejected writes. */
export function changeClauses(open: Open): void {
  describe('changing', () => patches(open))
  describe('status', () => status(open))
  describe('validation', () => validation(open))
}
