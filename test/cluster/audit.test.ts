import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDeployment } from '../support/deployment/deployment.ts'
import type { Tenant } from '../support/api/tenant.ts'
import { clientsOf, type Kubernetes } from './setup/commands.ts'
import { KUBECTL_WAIT, LATER } from '../support/patience.ts'

/** Entries of the audit log for changes by kubectl. */

const deployment = openDeployment()
let acme: Tenant
let kubectl: Kubernetes['kubectl']
beforeAll(async () => {
  ;({ kubectl } = clientsOf(process.env.KUBECONFIG ?? ''))
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

test('the audit log records creation, change and deletion of a tunnel by kubectl with the user', async () => {
  const namespace = `${acme.organization}--${acme.namespace}`
  const tunnel = (config: object) => ({
    ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', metadata: { name: 'audited', namespace } },
    spec: { regionId: 1, displayName: 'by hand', config },
  })
  await kubectl(['apply', '--filename', '-'], tunnel({}))
  await kubectl(['wait', '--for=condition=Ready', 'tunnel/audited', '--namespace', namespace, KUBECTL_WAIT])
  await kubectl(['apply', '--filename', '-'], tunnel({ httpsOnly: true }))
  await kubectl(['delete', 'tunnel', 'audited', '--namespace', namespace, '--wait'])
  await vi.waitFor(async () => {
    const { entries } = (await acme.as('viewer')('GET', `${acme.path}/audit?kind=Tunnel`)).body.data
    expect(entries).toMatchObject([
      { action: 'delete', via: 'kubectl', resource: { name: 'by hand' } },
      { action: 'update', via: 'kubectl', changes: [{ path: 'config.httpsOnly', from: false, to: true }] },
      { action: 'create', via: 'kubectl' },
    ])
    for (const { actor } of entries) expect(actor?.name).toMatch(/\w/)
  }, LATER)
})
