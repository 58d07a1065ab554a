import { expect, test } from 'vitest'
import { clientsOf } from './setup/commands.ts'
import { memberOf, openTenantNamespace } from './setup/tenant.ts'
import { KUBECTL_WAIT, LATER } from '../support/patience.ts'

const APPLY = ['apply', '--filename', '-']

test('of 51 tunnels applied at once fifty are served; the last reports QuotaExceeded until another is deleted', async () => {
  await using opened = new AsyncDisposableStack()
  const clients = clientsOf(process.env.KUBECONFIG ?? '')
  const namespace = `full-${Date.now().toString(36)}--prod`
  opened.use(await openTenantNamespace(clients.kubectl, namespace))
  const about = { namespace, role: 'editor' } as const
  const { kubectl } = opened.use(await memberOf(clients, about))
  const items = Array.from({ length: 51 }, (_, index) => ({
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: { name: `many-${index}` },
    spec: { regionId: 1 },
  }))
  await kubectl(APPLY, { apiVersion: 'v1', kind: 'List', items })

  const reason = '{.status.conditions[?(@.type=="Ready")].reason}'
  const each = `jsonpath={range .items[*]}{.metadata.name} ${reason}{"\\n"}{end}`
  const namesBy = async () => {
    const lines = (await kubectl(['get', 'tunnels', '--output', each])).split('\n').map((line) => line.trim().split(' '))
    return Map.groupBy(lines, ([, said = '']) => said)
  }
  const counts = async () => Object.fromEntries([...(await namesBy())].map(([said, { length }]) => [said, length]))
  await expect.poll(counts, LATER).toEqual({ Assigned: 50, QuotaExceeded: 1 })
  const by = await namesBy()
  const [[waiting = ''] = [], [served = ''] = []] = [by.get('QuotaExceeded')?.[0], by.get('Assigned')?.[0]]
  const message = 'the namespace has 50 tunnels, and may have 50: delete one, or ask for a higher quota'
  await expect
    .poll(() => kubectl(['describe', 'tunnel', waiting]), LATER)
    .toMatch(new RegExp(`Warning +QuotaExceeded .*${message}`))

  await kubectl(['delete', 'tunnel', served, KUBECTL_WAIT])
  await kubectl(['wait', '--for=condition=Ready', `tunnel/${waiting}`, KUBECTL_WAIT])
})
