import { expect, test } from 'vitest'
import { Tunnel } from '../../crds/tunnel.ts'
import { MooringError } from '../../shared/errors.ts'
import type { AuditRecord } from '../../journal/port.ts'
import { createLines } from '../../test/support/api/http-app.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { Namespace } from '../../crds/core.ts'
import { createAudit } from './audit.ts'
import { newMember } from '../tenancy/members.ts'

const NOW = new Date('2030-01-01T00:00:00Z')
const request = { principal: { user: 'local:alice', groups: [] }, requestId: 'r1', sourceIp: '203.0.113.1' }

async function someTunnel() {
  await using place = await openTemporaryStore()
  await place.store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const spec = { regionId: 1, displayName: 'Web' }
  return await place.store.create(Tunnel, { metadata: { namespace: 'acme--prod', name: 't-1' }, spec })
}

/** Creates an audit recorder over a given journal function. */
function over(keep: (record: AuditRecord) => Promise<void>) {
  const { log, lines } = createLines()
  return {
    audit: createAudit({
      journal: { audit: keep },
      log,
      now: () => NOW,
      digest: (_owner, value) => `digest of ${value.length}`,
      waitMs: 20,
    }),
    lines,
  }
}

test('an entry has actor, action, resource and time', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  const tunnel = await someTunnel()
  const config = { ...tunnel.spec.config, httpsOnly: true }
  await audit.record({ ...request, action: 'update', before: tunnel, after: { ...tunnel, spec: { ...tunnel.spec, config } } })
  await audit.record({ ...request, principal: { user: 'mooring:api-token:7', groups: [] }, action: 'delete', before: tunnel })
  const resource = { kind: 'Tunnel', id: tunnel.metadata.uid, name: 'Web' }
  const common = { at: NOW.getTime(), namespace: 'acme--prod', via: 'rest', resource, sourceIp: '203.0.113.1', requestId: 'r1' }
  expect(entries).toMatchObject([
    {
      ...common,
      actor: { name: 'local:alice', kind: 'user' },
      action: 'update',
      generation: 1,
      changes: [{ path: 'config.httpsOnly', from: false, to: true }],
    },
    {
      ...common,
      actor: { name: 'mooring:api-token:7', kind: 'apiToken' },
      action: 'delete',
      generation: null,
      changes: [
        { path: 'regionId', from: 1, to: null },
        { path: 'name', from: 'Web', to: null },
        { path: 'config', to: null },
      ],
    },
  ])
  expect(new Set(entries.map(({ id }) => id)).size).toBe(2)
})

const meta = { uid: 'u1', resourceVersion: '1', generation: 1, creationTimestamp: '2030-01-01T00:00:00Z' }

test('a value of a header is recorded as its digest', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  const before = await someTunnel()
  const liveHeaderModifications = [{ name: 'Authorization', value: 'Bearer secret', type: 'request' as const }]
  const after = { ...before, spec: { ...before.spec, config: { ...before.spec.config, liveHeaderModifications } } }
  await audit.record({ ...request, action: 'update', before, after })
  const to = [{ name: 'Authorization', value: 'digest of 13', type: 'request' }]
  expect(entries).toMatchObject([{ changes: [{ path: 'config.liveHeaderModifications', from: [], to }] }])
})

test('an entry names a member by its subject, and a change of its role is one entry', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  const member = (role: 'viewer' | 'admin') =>
    ({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
      ...newMember('acme--prod', { subject: 'local:bob', role }, NOW),
    }) as const
  const [before, after] = [member('viewer'), member('admin')].map((made) => ({
    ...made,
    metadata: { ...made.metadata, ...meta },
  }))
  await audit.record({ ...request, action: 'update', before, after })
  expect(entries).toMatchObject([
    {
      namespace: 'acme--prod',
      resource: { kind: 'Member', id: 'local:bob', name: 'local:bob' },
      changes: [{ path: 'role', from: 'viewer', to: 'admin' }],
    },
  ])
})

test('an entry of a namespace is also listed for its organization; one of an organization only there', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  const common = { apiVersion: 'mooring.dev/v1alpha1' }
  const spec = { organization: 'acme', namespace: 'prod' }
  const namespace = { ...common, kind: 'TenantNamespace', metadata: { ...meta, name: 'acme--prod' }, spec }
  const organization = { ...common, kind: 'Organization', metadata: { ...meta, name: 'acme' }, spec: { name: 'Acme' } }
  await audit.record({ ...request, action: 'delete', before: namespace })
  await audit.record({ ...request, action: 'create', after: organization })
  expect(entries.map(({ namespace: at, resource }) => `${at} ${resource.kind} ${resource.name}`)).toEqual([
    'acme--prod TenantNamespace acme/prod',
    'organization/acme TenantNamespace acme/prod',
    'organization/acme Organization acme',
  ])
  expect(new Set(entries.map(({ id }) => id)).size).toBe(3)
})

test('a read of credentials is an entry without changes', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  await audit.record({ ...request, action: 'read', after: await someTunnel() })
  expect(entries).toMatchObject([{ action: 'read', generation: null, changes: [] }])
})

test('an unavailable journal delays an answer briefly and fails none', async () => {
  const away = over(() => new Promise(() => undefined))
  await away.audit.record({ ...request, action: 'create', after: await someTunnel() })
  expect(away.lines).toMatchObject([{ msg: 'the journal is unavailable: an audit entry is queued', requestId: 'r1' }])
  const broken = over(() => Promise.reject(new MooringError('unavailable', 'no room')))
  await broken.audit.record({ ...request, action: 'create', after: await someTunnel() })
  expect(broken.lines).toMatchObject([{ msg: 'an audit entry could not be written', requestId: 'r1' }])
})
