import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { clientsOf } from './setup/commands.ts'
import { type Member, memberOf } from './setup/tenant.ts'
import { openTunnelBench, type TunnelBench } from './tunnels/bench.ts'
import { LATER, patient } from '../support/patience.ts'

/** Header values from Secrets by kubectl, with the permissions of the chart: the edges read no Secret of a tenant. */

let bench: TunnelBench
let viewer: Member
beforeAll(async () => {
  bench = await openTunnelBench()
  viewer = await memberOf(clientsOf(process.env.KUBECONFIG ?? ''), { namespace: bench.namespace, role: 'viewer' })
})
afterAll(async () => {
  await viewer[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

/** Waits until the backend receives this value; undefined: none. A change of a Secret is read within some ten seconds. */
const receives = (hostname: string, value: string | undefined) =>
  vi.waitFor(
    async () => {
      const { status, body } = await bench.visit(hostname)
      expect(status).toBe(200)
      expect((JSON.parse(body) as Readonly<Record<string, string>>)['x-token']).toBe(value)
    },
    { ...LATER, timeout: patient(60_000) },
  )

test('a header has the value of a Secret, follows its changes, and is removed while the value is missing', async () => {
  const { editor, kubectl, namespace } = bench
  const inNamespace = ['--namespace', namespace]
  const hostname = await bench.tunnel('web')
  bench.connect(hostname)
  await receives(hostname, undefined)
  const item = { name: 'X-Token', type: 'request', valueFrom: { secretKeyRef: { name: 'backend', key: 'token' } } }
  const patch = { spec: { config: { liveHeaderModifications: [item] } } }
  await editor(['patch', 'tunnel', 'web', '--type=merge', '--patch', JSON.stringify(patch)])
  const condition = 'jsonpath={.status.conditions[?(@.type=="HeadersUsable")].reason}'
  await vi.waitFor(async () => expect(await editor(['get', 'tunnel', 'web', '--output', condition])).toBe('SecretMissing'), LATER)

  await kubectl(['create', 'secret', 'generic', 'backend', '--from-literal=token=first-value', ...inNamespace])
  await receives(hostname, 'first-value')
  await kubectl([
    'patch',
    'secret',
    'backend',
    '--type=merge',
    '--patch',
    '{"stringData":{"token":"second-value"}}',
    ...inNamespace,
  ])
  await receives(hostname, 'second-value')
  expect(await viewer.kubectl(['get', 'tunnel', 'web', '--output', 'yaml'])).not.toContain('-value')
  await expect(viewer.kubectl(['get', 'secret', 'backend'])).rejects.toThrow(/forbidden/i)
  await kubectl(['delete', 'secret', 'backend', ...inNamespace])
  await receives(hostname, undefined)
})

test('an item has either a value or a source of it', async () => {
  const both = { name: 'X-A', type: 'request', value: 'a', valueFrom: { secretKeyRef: { name: 'a', key: 'a' } } }
  for (const item of [both, { name: 'X-A', type: 'request' }]) {
    const spec = { regionId: 1, config: { liveHeaderModifications: [item] } }
    const body = { apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', metadata: { name: 'refused' }, spec }
    await expect(bench.editor(['apply', '--filename', '-'], body)).rejects.toThrow('either value or valueFrom')
  }
})
