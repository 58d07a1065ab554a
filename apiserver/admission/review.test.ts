import { expect, test } from 'vitest'
import { auditReview } from '../../test/builders/admission-review.ts'
import { AdmissionReview, entriesOf } from './review.ts'

const AT = Date.parse('2026-01-02T03:04:05Z')
const entryFor = (about: Parameters<typeof auditReview>[0]) =>
  entriesOf(AdmissionReview.parse(auditReview(about)).request, { at: AT, digest: () => 'digest' })[0]

const httpsOnly = { regionId: 1, displayName: 'Web', config: { httpsOnly: true } }
const plain = { regionId: 1, displayName: 'Web', config: { httpsOnly: false } }

test('an entry has the cluster user, the action and the resource', () => {
  expect(entryFor({ operation: 'UPDATE', object: httpsOnly, oldObject: plain })).toEqual({
    id: expect.any(String) as string,
    at: AT,
    namespace: 'acme--prod',
    actor: { name: 'ada@example.org', kind: 'user' },
    via: 'kubectl',
    action: 'update',
    resource: { kind: 'Tunnel', id: '8c6c4b0e-7a9e-4f0f-9a3f-1d3e5f7a9b2c', name: 'Web', hostname: '0123456789abcdef' },
    generation: 2,
    changes: [{ path: 'config.httpsOnly', from: false, to: true }],
    sourceIp: null,
    requestId: null,
  })
  expect(entryFor({ operation: 'CREATE', object: plain })).toMatchObject({
    action: 'create',
    generation: 1,
    changes: [
      { path: 'regionId', from: null, to: 1 },
      { path: 'name', from: null, to: 'Web' },
      { path: 'config', from: null, to: { httpsOnly: false } },
    ],
  })
  expect(entryFor({ operation: 'DELETE', oldObject: plain })).toMatchObject({
    action: 'delete',
    generation: null,
    changes: [{ path: 'regionId', from: 1, to: null }, { path: 'name' }, { path: 'config', to: null }],
  })
})

test('an entry contains neither secrets nor their hashes', () => {
  const sha256 = 'a'.repeat(64)
  const entry = entryFor({ operation: 'CREATE', object: { tunnelRef: { name: 'web' }, sha256 } })
  expect(entry?.changes).toEqual([{ path: 'tunnelRef', from: null, to: 'web' }])
  const liveHeaderModifications = [{ name: 'Authorization', value: 'Bearer secret', type: 'request' }]
  const config = { ...plain.config, liveHeaderModifications }
  const headers = entryFor({ operation: 'UPDATE', object: { ...plain, config }, oldObject: plain })
  const to = [{ name: 'Authorization', value: 'digest', type: 'request' }]
  expect(headers?.changes).toEqual([{ path: 'config.liveHeaderModifications', from: null, to }])
})

test('an entry of a tunnel has its hostname', () => {
  const entry = entryFor({ operation: 'DELETE', oldObject: plain })
  expect(entry?.resource).toMatchObject({ name: 'Web', hostname: '0123456789abcdef' })
})

test('an entry distinguishes service accounts from users', () => {
  const username = 'system:serviceaccount:ci:deployer'
  expect(entryFor({ operation: 'CREATE', object: plain, username })?.actor).toEqual({ name: username, kind: 'serviceAccount' })
})

test.each<[string, Parameters<typeof auditReview>[0]]>([
  ['a trial', { operation: 'CREATE', object: plain, dryRun: true }],
  ['a status', { operation: 'UPDATE', object: httpsOnly, oldObject: plain, subResource: 'status' }],
  ['marks alone', { operation: 'UPDATE', object: plain, oldObject: plain }],
  [
    'what came by REST',
    { operation: 'CREATE', object: plain, username: 'system:serviceaccount:mooring-system:mooring-apiserver' },
  ],
  ['the operator', { operation: 'DELETE', oldObject: plain, username: 'system:serviceaccount:mooring-system:mooring-operator' }],
])('%s has no entry', (_what, about) => {
  expect(entryFor(about)).toBeUndefined()
})
