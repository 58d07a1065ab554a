import { expect, test } from 'vitest'
import type { Kind, Resource } from '../../crds/kind.ts'
import { tunnelPassword } from '../../test/builders/resources.ts'
import { changesBetween, unseenEntry } from './unseen-change.ts'

const SEEN = Date.parse('2030-01-01T00:01:00Z')
const CREATED = '2030-01-01T00:00:00Z'
const DELETED = '2030-01-01T00:00:30Z'

interface About {
  readonly generation: number
  readonly deleting?: boolean
  readonly spec?: object
  readonly annotations?: Readonly<Record<string, string>>
}

const object = ({ generation, deleting = false, spec = { displayName: 'Web' }, annotations }: About): Resource<Kind> => ({
  ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', spec },
  metadata: {
    ...{ name: 't-1', namespace: 'acme--prod', uid: 'u1', resourceVersion: '1', creationTimestamp: CREATED, generation },
    ...(deleting && { deletionTimestamp: DELETED }),
    ...(annotations && { annotations }),
  },
})

const at = (generation: number) => object({ generation })
const going = (generation: number) => object({ generation, deleting: true })

test.each<{ does: string; before?: Resource<Kind>; after?: Resource<Kind>; tells: readonly (number | null)[] }>([
  { does: 'a new object was created', after: at(1), tells: [1] },
  { does: 'an unknown object may have been changed since its creation', after: at(3), tells: [1, 2, 3] },
  { does: 'only the newest of very many changes count', after: at(1_000), tells: Array.from({ length: 32 }, (_, i) => 969 + i) },
  { does: 'a change of the status is no change', before: at(2), after: at(2), tells: [] },
  { does: 'two changes may come as one', before: at(1), after: at(3), tells: [2, 3] },
  { does: 'the mark of a deletion is a change, its generation is not', before: at(2), after: going(3), tells: [null] },
  { does: 'the mark of a deletion without a generation is a change', before: at(2), after: going(2), tells: [null] },
  { does: 'a change may come together with the mark', before: at(1), after: going(3), tells: [2, null] },
  { does: 'an object that is being deleted when it is first seen', after: going(2), tells: [1, null] },
  { does: 'an object that is deleted without a mark', before: at(1), tells: [null] },
  { does: 'the end of a deletion is no second change', before: going(2), tells: [] },
  { does: 'a write to an object that is being deleted is no change', before: going(2), after: going(3), tells: [] },
  { does: 'nothing at all', tells: [] },
])('$does', ({ before, after, tells }) => {
  expect(changesBetween(before, after, SEEN).map(({ generation }) => generation)).toEqual(tells)
})

const entryOf = (before: Resource<Kind> | undefined, after: Resource<Kind> | undefined, ownersGone = false) =>
  changesBetween(before, after, SEEN).map((change) => unseenEntry(change, { ownersGone, digest: () => 'digest' }))[0]

test('an entry has all known fields of a write, and no actor', () => {
  expect(entryOf(undefined, at(1))).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/) as string,
    at: Date.parse(CREATED),
    namespace: 'acme--prod',
    actor: null,
    via: 'unknown',
    action: 'create',
    resource: { kind: 'Tunnel', id: 'u1', name: 'Web' },
    generation: 1,
    changes: [{ path: 'name', from: null, to: 'Web' }],
    sourceIp: null,
    requestId: null,
  })
  const renamed = object({ generation: 2, spec: { displayName: 'Shop', sha256: 'a' } })
  expect(entryOf(at(1), renamed)).toMatchObject({
    ...{ at: SEEN, action: 'update', actor: null },
    changes: [{ path: 'name', from: 'Web', to: 'Shop' }],
  })
  expect(entryOf(at(1), object({ generation: 3, spec: {} }))).toMatchObject({ generation: 2, changes: [] })
  expect(entryOf(at(1), undefined)).toMatchObject({ at: SEEN, action: 'delete', actor: null })
  expect(entryOf(at(1), going(2))).toMatchObject({ at: Date.parse(DELETED), action: 'delete', actor: null })
})

test('an entry has the hostname of a tunnel, and a digest in place of the value of a header', () => {
  const liveHeaderModifications = [{ name: 'Authorization', value: 'Bearer secret', type: 'request' }]
  const made = {
    ...object({ generation: 1, spec: { config: { liveHeaderModifications } } }),
    status: { hostname: '0123456789abcdef' },
  }
  const entry = entryOf(undefined, made)
  expect(entry?.resource).toMatchObject({ hostname: '0123456789abcdef' })
  expect(entry?.changes).toEqual([
    {
      path: 'config',
      from: null,
      to: { liveHeaderModifications: [{ name: 'Authorization', value: 'digest', type: 'request' }] },
    },
  ])
})

test('the same write gives the same entry', () => {
  expect(entryOf(undefined, at(1))).toEqual(entryOf(undefined, at(1)))
  expect(entryOf(at(1), going(2))?.id).not.toBe(entryOf(at(1), at(2))?.id)
})

test.each([
  { does: 'an expired object', before: object({ generation: 1, spec: { expiresAt: CREATED } }) },
  {
    does: 'a password past the maximum lifetime',
    before: tunnelPassword({
      metadata: { creationTimestamp: '2029-12-31T20:01:00Z' },
      spec: { expiresAt: '2099-01-01T00:00:00Z' },
    }),
  },
  {
    does: 'an object past its claim deadline',
    before: object({ generation: 1, annotations: { 'mooring.dev/claim-deadline': CREATED } }),
  },
  { does: 'an object deleted with its owner', before: at(1), ownersGone: true },
])('$does was deleted by the operator', ({ before, ownersGone }) => {
  expect(entryOf(before, undefined, ownersGone)?.actor).toEqual({ name: 'mooring', kind: 'operator' })
})

test('an object that has not expired was deleted by an unknown actor', () => {
  const before = object({ generation: 1, spec: { expiresAt: '2030-01-01T00:02:00Z' } })
  expect(entryOf(before, undefined)?.actor).toBeNull()
})
