import { beforeAll, expect, test } from 'vitest'
import type { AuditRecord } from '../../journal/port.ts'
import { createCa, issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { auditReview } from '../../test/builders/admission-review.ts'
import { createHttpsClient } from '../../test/support/api/https-client.ts'
import { createLines } from '../../test/support/api/http-app.ts'
import { startAuditListener, AdmissionReview, entriesOf } from './audit-webhook.ts'

let ca: KeyPair
let certificate: KeyPair
beforeAll(async () => {
  ca = await createCa(new Date())
  certificate = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
})

const review = auditReview({ operation: 'CREATE', object: { regionId: 1 } })

/** Starts a listener over a given journal function, with a caller that trusts its certificate. */
async function start(keep: (record: AuditRecord) => Promise<void>) {
  const { log, lines } = createLines()
  const listener = await startAuditListener({
    ...{ host: '127.0.0.1', port: 0, certificate: () => certificate, path: () => '/audit/known', log, now: () => new Date() },
    digest: () => () => 'digest',
    journal: { audit: keep },
  })
  const client = createHttpsClient(ca.certificate)
  return {
    lines,
    async send(body: string, path = '/audit/known?timeout=2s') {
      const headers = { 'Content-Type': 'application/json' }
      const { status, text } = await client.send(`https://127.0.0.1:${listener.port}${path}`, { method: 'POST', headers, body })
      return { status, text }
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await listener[Symbol.asyncDispose]()
    },
  }
}

const allowed = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid: review.request.uid, allowed: true },
})

test('a write is recorded and allowed', async () => {
  const kept: AuditRecord[] = []
  await using at = await start(async (record) => void kept.push(record))
  expect(await at.send(JSON.stringify(review))).toEqual({ status: 200, text: allowed })
  expect(kept).toMatchObject([{ action: 'create', via: 'kubectl', actor: { name: 'ada@example.org' } }])
})

test('a write is allowed when its entry cannot be written', async () => {
  await using at = await start(() => Promise.reject(new Error('no room')))
  expect(await at.send(JSON.stringify(review))).toEqual({ status: 200, text: allowed })
  expect(at.lines).toMatchObject([{ msg: 'an audit entry could not be written' }])
})

test.each<[string, string, string | undefined, number]>([
  ['who does not know the path', JSON.stringify(review), '/audit/guessed', 404],
  ['text that is not JSON', '{', undefined, 400],
  ['JSON that is not a review', '{"kind":"AdmissionReview"}', undefined, 400],
])('%s writes nothing', async (_what, body, path, status) => {
  const kept: AuditRecord[] = []
  await using at = await start(async (record) => void kept.push(record))
  expect((await at.send(body, path)).status).toBe(status)
  expect(kept).toEqual([])
})

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
