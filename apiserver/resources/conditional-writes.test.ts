import { expect, onTestFinished, test } from 'vitest'
import fc from 'fast-check'
import { Namespace } from '../../crds/core.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { openTemporaryStore, createConflictingStore } from '../../test/support/store/temporary-store.ts'
import type { Patch, Store } from '../../store/port.ts'
import { changeSpec, deleteExpected, requestDeletion, type IfMatch, isExpected, parseIfMatch } from './conditional-writes.ts'

const NAMESPACE = 'acme--prod'
const key = { namespace: NAMESPACE, name: 'web' }
const marks = { 'mooring.dev/updated-at': 'now' }

async function tunnelIn() {
  const { store, ...temporary } = await openTemporaryStore()
  onTestFinished(() => temporary[Symbol.asyncDispose]())
  await store.create(Namespace, { metadata: { name: NAMESPACE } })
  const spec = { regionId: 1, displayName: 'Web', config: { sshIPWhitelist: ['192.0.2.1'] } }
  return { store, found: await store.create(Tunnel, { metadata: key, spec }) }
}

test.each<{ does: string; spec: Patch; isChanged: boolean }>([
  { does: 'the same name', spec: { displayName: 'Web' }, isChanged: false },
  { does: 'the same list', spec: { config: { sshIPWhitelist: ['192.0.2.1'] } }, isChanged: false },
  { does: 'a default that holds', spec: { config: { httpsOnly: false, target: null, authMode: null } }, isChanged: false },
  { does: 'nothing', spec: {}, isChanged: false },
  { does: 'another name', spec: { displayName: 'Shop' }, isChanged: true },
  { does: 'all defaults', spec: { config: null }, isChanged: true },
  { does: 'a list put back', spec: { config: { sshIPWhitelist: null } }, isChanged: true },
])('a request for $does changes the spec: $isChanged', async ({ spec, isChanged }) => {
  const { store, found } = await tunnelIn()
  const changed = await changeSpec(store, Tunnel, { found, specOf: () => spec, marks })
  expect(changed.isChanged).toBe(isChanged)
  expect(changed.before).toEqual(found)
  expect(await store.get(Tunnel, key)).toEqual(changed.after)
  expect(changed.after.metadata.resourceVersion !== found.metadata.resourceVersion).toBe(isChanged)
  expect(changed.after.metadata.annotations).toEqual(isChanged ? marks : undefined)
})

test('the store rejects an invalid change', async () => {
  const { store, found } = await tunnelIn()
  const broken = changeSpec(store, Tunnel, { found, specOf: () => ({ config: { sshIPWhitelist: ['nowhere'] } }) })
  await expect(broken).rejects.toMatchObject({ code: 'invalid' })
})

test('two simultaneous equal requests change the spec once, and each change has its previous state', async () => {
  const { store, found } = await tunnelIn()
  const rename = (to: string) => changeSpec(store, Tunnel, { found, specOf: () => ({ displayName: to }) })
  const all = await Promise.all(['a', 'a', 'b', 'b'].map(rename))
  const changes = all.filter(({ isChanged }) => isChanged)
  expect(changes).toHaveLength(2)
  const [first, second] = changes.toSorted((a, b) => a.after.metadata.generation - b.after.metadata.generation)
  expect(first?.before.spec.displayName).toBe('Web')
  expect(second?.before).toEqual(first?.after)
})

test('a conflict with another writer is retried unless the caller expects the version', async () => {
  const { store, found } = await tunnelIn()
  const version = found.metadata.resourceVersion
  const attempt = (on: Store, ifMatch?: IfMatch) =>
    changeSpec(on, Tunnel, { found, ifMatch, specOf: () => ({ displayName: 'Shop' }) })
  const { after } = await attempt(createConflictingStore(store).store)
  expect(after.spec.displayName).toBe('Shop')
  for (const none of [[version], []]) await expect(attempt(store, none)).rejects.toMatchObject({ code: 'conflict' })
  for (const one of ['*', [version, after.metadata.resourceVersion]] as const)
    expect((await attempt(store, one)).isChanged).toBe(false)
})

test('an object that is being deleted or was replaced is not changed', async () => {
  const { store, found } = await tunnelIn()
  const attempt = () => changeSpec(store, Tunnel, { found, specOf: () => ({ displayName: 'Web' }) })
  await store.mergePatch(Tunnel, key, { metadata: { finalizers: ['example.org/keep'] } })
  await store.delete(Tunnel, key)
  await expect(attempt()).rejects.toMatchObject({ code: 'conflict' })
  await store.mergePatch(Tunnel, key, { metadata: { finalizers: [] } })
  await expect(attempt()).rejects.toMatchObject({ code: 'not_found' })
  await store.create(Tunnel, { metadata: key, spec: { regionId: 1 } })
  await expect(attempt()).rejects.toMatchObject({ code: 'not_found' })
})

const KEEP = 'example.org/keep'

/** Creates a tunnel with a finalizer and two versions, `old` and `now`. */
async function placed() {
  const { store, ...temporary } = await openTemporaryStore()
  await store.create(Namespace, { metadata: { name: key.namespace } })
  const first = await store.create(Tunnel, { metadata: { ...key, finalizers: [KEEP] }, spec: { regionId: 1 } })
  const found = await store.mergePatch(Tunnel, key, { spec: { displayName: 'Web' } })
  const [old, now] = [first.metadata.resourceVersion, found.metadata.resourceVersion]
  const isBeingDeleted = async () => (await store.get(Tunnel, key))?.metadata.deletionTimestamp !== undefined
  return { ...temporary, store, found, old, now, isBeingDeleted }
}

test.each([
  { does: 'without a condition', ifMatch: () => undefined },
  { does: 'at any version', ifMatch: () => '*' as const },
  { does: 'at its version', ifMatch: (_old: string, now: string) => [now] },
  { does: 'at one of several versions', ifMatch: (old: string, now: string) => [old, now] },
])('an object is deleted $does, and only the first request returns true', async ({ ifMatch }) => {
  await using place = await placed()
  const { store, found, old, now, isBeingDeleted } = place
  expect(await requestDeletion(store, Tunnel, found, ifMatch(old, now))).toBe(true)
  expect(await isBeingDeleted()).toBe(true)
  const deleting = await store.get(Tunnel, key)
  if (!deleting) expect.fail('the object is gone')
  expect(await requestDeletion(store, Tunnel, deleting, undefined)).toBe(false)
  await store.mergePatch(Tunnel, key, { metadata: { finalizers: [] } })
  expect(await requestDeletion(store, Tunnel, deleting, undefined)).toBe(false)
  expect(await requestDeletion(store, Tunnel, deleting, [now])).toBe(false)
  await expect(deleteExpected(store, Tunnel, deleting, undefined)).rejects.toMatchObject({ code: 'not_found' })
})

test('an object with another version is not deleted', async () => {
  await using place = await placed()
  const { store, found, old, isBeingDeleted } = place
  for (const ifMatch of [[old], [old, '1'], []]) {
    await expect(requestDeletion(store, Tunnel, found, ifMatch)).rejects.toMatchObject({ code: 'conflict' })
    await expect(deleteExpected(store, Tunnel, found, ifMatch)).rejects.toMatchObject({ code: 'conflict' })
  }
  expect(await isBeingDeleted()).toBe(false)
})

test.each([
  { header: undefined, means: undefined },
  { header: '*', means: '*' },
  { header: ' * ', means: '*' },
  { header: '"727"', means: ['727'] },
  { header: '727', means: ['727'] },
  { header: '"1", "727"', means: ['1', '727'] },
  { header: '1,727', means: ['1', '727'] },
  { header: ', "1" ,, \t"2",', means: ['1', '2'] },
  { header: '"a,b", "\u00e9"', means: ['a,b', '\u00e9'] },
  { header: '""', means: [''] },
  { header: 'W/"727"', means: [] },
  { header: 'W/"1", "2"', means: ['2'] },
])('If-Match: $header accepts $means', ({ header, means }) => {
  expect(parseIfMatch(header)).toEqual(means)
})

test.each([
  '',
  ' ',
  ',',
  '"',
  '"1',
  'W/',
  'W/1',
  'w/"1"',
  '"1" "2"',
  '"1""2"',
  '1"2"',
  '"a b"',
  '"1", *',
  '*, *',
  '1;2',
  '"\u0000"',
])('If-Match: %j is rejected with its name', (header) => {
  expect(() => parseIfMatch(header)).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: [expect.objectContaining({ field: 'If-Match' })] }),
  )
})

test('a list of tags gives its strong tags, unchanged', () => {
  const opaque = fc.stringMatching(/^[\x21\x23-\x7e\x80-\xff]*$/)
  const tags = fc.array(fc.record({ opaque, isWeak: fc.boolean() }), { minLength: 1 })
  fc.assert(
    fc.property(tags, fc.constantFrom(',', ', ', ' ,\t', ',,'), (all, comma) => {
      const header = all.map(({ opaque: text, isWeak }) => `${isWeak ? 'W/' : ''}"${text}"`).join(comma)
      expect(parseIfMatch(header)).toEqual(all.flatMap(({ opaque: text, isWeak }) => (isWeak ? [] : [text])))
    }),
  )
})

test.each([
  { version: '7', ifMatch: undefined, is: true },
  { version: undefined, ifMatch: undefined, is: true },
  { version: '7', ifMatch: '*', is: true },
  { version: undefined, ifMatch: '*', is: false },
  { version: '7', ifMatch: ['6', '7'], is: true },
  { version: '7', ifMatch: ['6'], is: false },
  { version: '7', ifMatch: [], is: false },
  { version: undefined, ifMatch: ['7'], is: false },
] as const)('that $version is expected by $ifMatch is $is', ({ version, ifMatch, is }) => {
  expect(isExpected(version, ifMatch)).toBe(is)
})
