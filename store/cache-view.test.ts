import { expect, test } from 'vitest'
import type { Organization } from '../crds/organization.ts'
import type { SharedInstance } from '../crds/shared-instance.ts'
import { sharedInstance } from '../test/builders/resources.ts'
import { organization } from '../test/support/store/caches.ts'
import { createCacheView, isOlder } from './cache-view.ts'

/** View with one object `a` of `uid@revision`. */
function viewOf(text: string) {
  const view = createCacheView<typeof Organization>()
  view.put(state(text))
  return view
}

function state(text: string) {
  const [uid = '', revision = ''] = text.split('@')
  return organization('a', uid, revision)
}

test.each([
  { does: 'ignores an older state of the same object', held: 'u1@20', put: 'u1@9', changed: false },
  { does: 'ignores an equal state', held: 'u1@20', put: 'u1@20', changed: false },
  { does: 'accepts a newer state of the same object', held: 'u1@9', put: 'u1@20', changed: true },
  { does: 'accepts another object of the same name at any revision', held: 'u1@20', put: 'u2@9', changed: true },
  { does: 'accepts a state whose revision cannot be compared', held: 'u1@b', put: 'u1@a', changed: true },
])('$does', ({ held, put, changed }) => {
  const view = viewOf(held)
  expect(view.put(state(put))).toBe(changed)
  expect(view.list({})).toEqual([state(changed ? put : held)])
  expect(view.byUid(state(held).metadata.uid) !== undefined).toBe(!changed || held.slice(0, 2) === put.slice(0, 2))
})

test.each([
  { does: 'removes its object at any revision', held: 'u1@20', gone: 'u1@9', changed: true },
  { does: 'removes an older object of the name when a later one is deleted', held: 'u1@9', gone: 'u2@20', changed: true },
  { does: 'keeps the successor of a deleted object', held: 'u2@20', gone: 'u1@9', changed: false },
])('$does', ({ held, gone, changed }) => {
  const view = viewOf(held)
  expect(view.remove(state(gone))).toBe(changed)
  expect(view.list({})).toHaveLength(changed ? 0 : 1)
})

test('replace returns exactly the keys that were added, changed or removed', () => {
  const view = createCacheView<typeof Organization>()
  view.replace([organization('same', 'u1', 1), organization('changed', 'u2', 2), organization('gone', 'u3', 3)])
  const keys = view.replace([organization('same', 'u1', 1), organization('changed', 'u2', 5), organization('new', 'u4', 4)])
  expect(keys.map(({ name }) => name).sort()).toEqual(['changed', 'gone', 'new'])
})

test('count and countByIndex follow added, changed and removed objects', () => {
  const view = createCacheView<typeof SharedInstance>({ motor: ({ spec }) => [spec.motor] })
  const [a, b] = [sharedInstance({ metadata: { name: 'a', uid: 'a' } }), sharedInstance({ metadata: { name: 'b', uid: 'b' } })]
  const c = sharedInstance({ metadata: { name: 'c', uid: 'c', namespace: 'acme--test' } })
  view.replace([a, b, c])
  const counts = () => [view.count({}), view.count({ namespace: 'acme--prod' }), view.countByIndex('motor', a.spec.motor)]
  expect(counts()).toEqual([3, 2, 3])
  view.put({ ...a, metadata: { ...a.metadata, resourceVersion: '8' }, spec: { ...a.spec, motor: 'postgresql-14.4.0' } })
  expect(counts()).toEqual([3, 2, 2])
  view.remove(b)
  expect(counts()).toEqual([2, 1, 1])
  expect([view.count({ namespace: 'none' }), view.countByIndex('motor', 'none')]).toEqual([0, 0])
  expect(() => view.countByIndex('colour', 'red')).toThrow(TypeError)
})

test.each([
  { a: '9', b: '10', older: true },
  { a: '10', b: '9', older: false },
  { a: '10', b: '10', older: false },
  { a: '9007199254740993', b: '9007199254740994', older: true },
  { a: '09', b: '10', older: false },
  { a: 'a', b: 'b', older: false },
  { a: '', b: '1', older: false },
])('$a is older than $b: $older', ({ a, b, older }) => {
  expect(isOlder(a, b)).toBe(older)
})
