import { expect, test } from 'vitest'
import { createValueDigest } from '../shared/audit-secrets.ts'
import type { Fields } from '../crds/formats/fields.ts'
import { auditChanges } from './audit-changes.ts'
import type { Audited } from './audited-object.ts'

const digest = createValueDigest(Buffer.from('0'.repeat(32)))
const audited = (fields: Fields | undefined, id = 'u1'): Audited | undefined =>
  fields && { resource: { kind: 'Tunnel', id, name: 'web' }, fields }
const changes = (before: Fields | undefined, after: Fields | undefined) => auditChanges(audited(before), audited(after), digest)

const config = { httpsOnly: false, authorizedKeys: ['a'], target: 'localhost:1' }

test.each<{ does: string; before: Fields | undefined; after: Fields | undefined; is: readonly object[] }>([
  { does: 'says nothing of what stayed', before: { config }, after: { config: { ...config } }, is: [] },
  {
    does: 'names each field that changed, lists as a whole',
    before: { regionId: 1, config },
    after: { regionId: 1, config: { ...config, httpsOnly: true, authorizedKeys: ['a', 'b'] } },
    is: [
      { path: 'config.httpsOnly', from: false, to: true },
      { path: 'config.authorizedKeys', from: ['a'], to: ['a', 'b'] },
    ],
  },
  {
    does: 'has null for a field that came or went',
    before: { config: { target: 'a:1' }, old: 1 },
    after: { config: {}, expiresAt: 'x' },
    is: [
      { path: 'config.target', from: 'a:1', to: null },
      { path: 'old', from: 1, to: null },
      { path: 'expiresAt', from: null, to: 'x' },
    ],
  },
  {
    does: 'names each field of an object that comes, once',
    before: undefined,
    after: { name: 'web', config: { httpsOnly: true } },
    is: [
      { path: 'name', from: null, to: 'web' },
      { path: 'config', from: null, to: { httpsOnly: true } },
    ],
  },
  { does: 'names each field of an object that goes', before: { a: 1 }, after: undefined, is: [{ path: 'a', from: 1, to: null }] },
  {
    does: 'leaves secrets and their hashes out, at any depth',
    before: undefined,
    after: { sha256: 'x', hooks: [{ secret: 'y', url: 'u' }], a: { password: 'z' } },
    is: [
      { path: 'hooks', from: null, to: [{ url: 'u' }] },
      { path: 'a', from: null, to: {} },
    ],
  },
  { does: 'says nothing of a changed secret', before: { sha256: 'x' }, after: { sha256: 'y' }, is: [] },
])('$does', ({ before, after, is }) => {
  expect(changes(before, after)).toEqual(is)
})

const header = (value: unknown) => ({ config: { liveHeaderModifications: [{ name: 'Authorization', value, type: 'request' }] } })
const valueIn = (change: object | undefined, side: 'from' | 'to'): unknown =>
  (change as Record<string, { value: unknown }[]> | undefined)?.[side]?.[0]?.value

test('a digest replaces the value of a header, and is equal exactly for equal values', () => {
  const [change] = changes(header('Bearer one'), header('Bearer two'))
  expect(change).toMatchObject({ path: 'config.liveHeaderModifications', from: [{ name: 'Authorization', type: 'request' }] })
  const [from, to] = [valueIn(change, 'from'), valueIn(change, 'to')]
  for (const value of [from, to]) expect(value).toMatch(/^hmac-sha256:[0-9a-f]{32}$/)
  expect(from).not.toBe(to)
  expect(changes(header('Bearer one'), header('Bearer one'))).toEqual([])
  const [created] = changes(undefined, header('Bearer one'))
  expect(created?.to).toMatchObject({ liveHeaderModifications: [{ value: from }] })
  expect(JSON.stringify([change, created])).not.toContain('Bearer')
})

test('a header value other than a string, as kubectl may send it, is replaced too', () => {
  expect(JSON.stringify(changes(undefined, header({ deep: 'Bearer one' })))).not.toContain('Bearer')
})

test('the removal of a header stays visible', () => {
  expect(valueIn(changes(header('x'), header(''))[0], 'to')).toBe('')
})

test('digests differ between resources and between installations', () => {
  const other = createValueDigest(Buffer.from('1'.repeat(32)))
  const digests = [digest('u1', 'guess'), digest('u2', 'guess'), other('u1', 'guess')]
  expect(new Set(digests).size).toBe(3)
})
