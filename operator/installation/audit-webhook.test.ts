import { expect, test } from 'vitest'
import type { ApiRequest } from '../../store/kubernetes/client.ts'
import { createLines } from '../../test/support/api/http-app.ts'
import { keepAuditWebhook } from './audit-webhook.ts'

const service = { namespace: 'mooring-system', name: 'mooring-audit', path: '/audit/known' }
const webhooks = (clientConfig: object) => ({ webhooks: [{ name: 'audit.mooring.dev', clientConfig }] })

/** Keeps the webhook once. `there`: webhook in the cluster before. */
async function keep(status: number, there: object = webhooks({ service: { name: 'mooring-audit' } })) {
  const requests: ApiRequest[] = []
  const { log, lines } = createLines()
  const client = {
    async request(request: ApiRequest) {
      requests.push(request)
      return { status, body: status === 200 ? there : { kind: 'Status', reason: 'Forbidden', code: status } }
    },
  }
  await using kept = await keepAuditWebhook({ client, ca: 'PEM', path: '/audit/known', log })
  return { kept, requests, lines }
}

test('the webhook gets the path and the CA', async () => {
  const { requests } = await keep(200)
  expect(requests).toMatchObject([
    { method: 'GET' },
    {
      method: 'PATCH',
      contentType: 'application/strategic-merge-patch+json',
      body: webhooks({ caBundle: 'UEVN', service }),
    },
  ])
})

test('a configured webhook is not written', async () => {
  const { requests } = await keep(200, webhooks({ caBundle: 'UEVN', service }))
  expect(requests.map(({ method }) => method)).toEqual(['GET'])
})

test.each([
  { status: 404, does: 'a missing webhook is not created', said: [] },
  {
    status: 403,
    does: 'an error is logged, and does not throw',
    said: ['the webhook of the audit log could not be configured: writes by kubectl are not recorded at once'],
  },
])('$does', async ({ status, said }) => {
  const { lines } = await keep(status)
  expect(lines.map(({ msg }) => msg)).toEqual(said)
})
