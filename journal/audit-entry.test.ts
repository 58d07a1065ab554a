import { expect, test } from 'vitest'
import { type AuditedObject, auditedObject, createValueDigest, auditChanges, type Audited } from './audit-entry.ts'
import type { Fields } from '../crds/formats/fields.ts'

const metadata = { uid: 'u1', name: 'i-b9f3' }
const HOSTNAME = '0123456789abcdef'
const tunnelOwner = { ownerReferences: [{ kind: 'Tunnel', uid: 'u0' }] }

test.each<{ does: string; object: AuditedObject; resource: object; fields: object }>([
  {
    does: 'a tunnel by its name, with its hostname',
    object: { kind: 'Tunnel', metadata, spec: { displayName: 'Web', regionId: 1 }, status: { hostname: HOSTNAME } },
    resource: { name: 'Web', hostname: HOSTNAME },
    fields: { name: 'Web', regionId: 1 },
  },
  {
    does: 'a tunnel without a name and a hostname by that of its object',
    object: { kind: 'Tunnel', metadata, spec: { regionId: 1 }, status: {} },
    resource: { name: 'i-b9f3' },
    fields: { regionId: 1 },
  },
  {
    does: 'a database by its identifier, without a hostname',
    object: {
      kind: 'SharedInstance',
      metadata,
      spec: { identifier: 'pr-42', enabled: false, templateRef: { name: 'seed' } },
      status: { hostname: HOSTNAME },
    },
    resource: { name: 'pr-42' },
    fields: { identifier: 'pr-42', isEnabled: false, template: 'seed' },
  },
  {
    does: 'a dedicated database by the name of its object',
    object: { kind: 'DedicatedDatabase', metadata: { uid: 'u1', name: 'shop' }, spec: { motor: 'mysql-8.0.29', plan: 'small' } },
    resource: { name: 'shop' },
    fields: { name: 'shop', engine: 'mysql-8.0.29', plan: 'small' },
  },
  {
    does: 'an API token by its name',
    object: { kind: 'ApiToken', metadata, spec: { displayName: 'ci', role: 'viewer' } },
    resource: { name: 'ci' },
    fields: { name: 'ci', role: 'viewer' },
  },
  {
    does: 'a password with the id of its tunnel',
    object: { kind: 'TunnelPassword', metadata: { ...metadata, ...tunnelOwner }, spec: { tunnelRef: { name: 't-1' } } },
    resource: { name: 'i-b9f3' },
    fields: { tunnel: 'u0' },
  },
  {
    does: 'a password of no tunnel yet with what it names',
    object: { kind: 'TunnelPassword', metadata, spec: { tunnelRef: { name: 't-1' } } },
    resource: { name: 'i-b9f3' },
    fields: { tunnel: 't-1' },
  },
  {
    does: 'an organization by its slug',
    object: { kind: 'Organization', metadata: { uid: 'u1', name: 'acme' }, spec: { name: 'Acme Ltd' } },
    resource: { name: 'acme' },
    fields: { slug: 'acme', name: 'Acme Ltd' },
  },
  {
    does: 'a namespace by its path',
    object: {
      kind: 'TenantNamespace',
      metadata: { uid: 'u1', name: 'acme--prod' },
      spec: { organization: 'acme', namespace: 'prod', displayName: 'Production' },
    },
    resource: { name: 'acme/prod' },
    fields: { organization: 'acme', slug: 'prod', name: 'Production' },
  },
  { does: 'one without a spec', object: { kind: 'Tunnel', metadata }, resource: { name: 'i-b9f3' }, fields: {} },
])('an entry names $does', ({ object, resource, fields }) => {
  expect(auditedObject(object)).toEqual({ resource: { kind: object.kind, id: 'u1', ...resource }, fields })
})

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

test('of the URL of a webhook its scheme and host are recorded, with a digest that differs for another path', () => {
  const webhook = (url: string): Audited => ({ resource: { kind: 'TunnelWebhook', id: 'u1', name: 'w' }, fields: { url } })
  const [first, second] = ['https://hooks.example.com:8443/T0/secret', 'https://hooks.example.com:8443/T0/other'].map(webhook)
  const [change] = auditChanges(first, second, digest)
  for (const url of [change?.from, change?.to])
    expect(url).toMatch(/^https:\/\/hooks\.example\.com:8443 \(hmac-sha256:[0-9a-f]{32}\)$/)
  expect(change?.from).not.toBe(change?.to)
  expect(auditChanges(first, first, digest)).toEqual([])
})
