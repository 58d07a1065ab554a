import { beforeAll, expect, test } from 'vitest'
import type { AuditRecord } from '../../journal/port.ts'
import { createCa, issueCertificate, type KeyPair } from '../../operator/certificates/local-ca.ts'
import { auditReview } from '../../test/builders/admission-review.ts'
import { createHttpsClient } from '../../test/support/api/https-client.ts'
import { createLines } from '../../test/support/api/toy-app.ts'
import { startAuditListener } from './listener.ts'

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
