import { expect, test } from 'vitest'
import { type AuditedObject, auditedObject } from './audited-object.ts'

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
