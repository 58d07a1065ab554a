import { expect, test } from 'vitest'
import type { ApiRequest } from '../../store/kubernetes/client.ts'
import { createLines } from '../../test/support/toy-app.ts'
import { keepAuditWebhook } from './audit-webhook.ts'

async function keep(status: number) {
  const requests: ApiRequest[] = []
  const { log, lines } = createLines()
  const client = {
    async request(request: ApiRequest) {
      requests.push(request)
      return { status, body: { kind: 'Status', reason: 'Forbidden', code: status } }
    },
  }
  using kept = await keepAuditWebhook({ client, ca: 'PEM', path: '/audit/known', log })
  return { kept, requests, lines }
}

test('the cluster is told where to report writes, and whom to trust there', async () => {
  const { requests } = await keep(200)
  const service = { namespace: 'mooring-system', name: 'mooring-audit', path: '/audit/known' }
  expect(requests).toMatchObject([
    {
      method: 'PATCH',
      contentType: 'application/strategic-merge-patch+json',
      body: { webhooks: [{ name: 'audit.mooring.dev', clientConfig: { caBundle: 'UEVN', service } }] },
    },
  ])
})

test.each([
  { status: 404, does: 'an installation without the webhook is left so', said: [] },
  {
    status: 403,
    does: 'what prevents it is said, and holds up nothing',
    said: ['writes by kubectl are not told to the audit log: its webhook could not be set up'],
  },
])('$does', async ({ status, said }) => {
  const { lines } = await keep(status)
  expect(lines.map(({ msg }) => msg)).toEqual(said)
})
