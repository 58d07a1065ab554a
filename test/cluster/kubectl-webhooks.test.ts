import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ownAddress, type Received, startReceiver, verify } from '../support/webhooks/receiver.ts'
import { openDeployment } from '../support/deployment/deployment.ts'
import { clientsOf } from './setup/commands.ts'
import { type Member, memberOf } from './setup/tenant.ts'
import { openTunnelBench, type TunnelBench } from './tunnels/bench.ts'
import { KUBECTL_WAIT, LATER } from '../support/patience.ts'

/** Webhooks with kubectl and ssh only, as an editor and as a viewer of one tenant's namespace. */

const APPLY = ['apply', '--filename', '-']
const deployment = openDeployment()
let bench: TunnelBench
let viewer: Member
let hostname: string
let host: string
beforeAll(async () => {
  bench = await openTunnelBench()
  viewer = await memberOf(clientsOf(process.env.KUBECONFIG ?? ''), { namespace: bench.namespace, role: 'viewer' })
  hostname = await bench.tunnel('web')
  host = await ownAddress(deployment.installation.sharedUrl)
})
afterAll(async () => {
  await viewer[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
  await deployment[Symbol.asyncDispose]()
})

const webhook = (name: string, spec: object) => ({
  ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'TunnelWebhook', metadata: { name } },
  spec: { tunnelRef: { name: 'web' }, ...spec },
})
const of = (name: string, path: string) => bench.editor(['get', 'tunnelwebhook', name, '--output', `jsonpath={${path}}`])
const NONE: Received = { headers: {}, body: '', at: 0 }

test('a webhook applied with kubectl gets messages that are signed by the secret in its Secret', async () => {
  await using receiver = await startReceiver()
  const url = `http://${host}:${receiver.port}/hook`
  await bench.editor(APPLY, webhook('hook', { url }))
  await bench.editor(['wait', '--for=condition=Ready', 'tunnelwebhook/hook', KUBECTL_WAIT])
  expect(await of('hook', '.metadata.ownerReferences[0].kind')).toBe('Tunnel')
  const name = await of('hook', '.status.secretRef.name')
  const read = ['get', 'secret', name, '--output', 'jsonpath={.data.secret}']
  const secret = Buffer.from(await bench.editor(read), 'base64').toString()
  await expect(viewer.kubectl(read)).rejects.toThrow(/[Ff]orbidden/)
  bench.connect(hostname)
  await vi.waitFor(() => expect(receiver.bodies()).toMatchObject([{ type: 'tunnel.connected' }]), LATER)
  verify(secret, receiver.received[0] ?? NONE)

  // A Secret that its owner has changed by hand is an output: it is written again, and signs nothing.
  await bench.editor(APPLY, webhook('hook', { url, secretVersion: 2 }))
  await expect.poll(async () => Buffer.from(await bench.editor(read), 'base64').toString(), LATER).not.toBe(secret)
  await expect.poll(() => of('hook', '.status.previousSecretVersion'), LATER).toBe('1')
  await bench.editor(['delete', 'tunnelwebhook', 'hook', KUBECTL_WAIT])
  await vi.waitFor(() => expect(bench.editor(['get', 'secret', name])).rejects.toThrow(/NotFound/), LATER)
})

describe('the API server rejects', () => {
  test.each([
    { does: 'a URL of another scheme', spec: { url: 'ftp://example.com/' } },
    { does: 'a URL with credentials', spec: { url: 'https://a:b@example.com/' } },
    { does: 'a fragment', spec: { url: 'https://example.com/#a' } },
    { does: 'a port of another service', spec: { url: 'https://example.com:22/' } },
    { does: 'a URL without a host', spec: { url: 'https://:443/' } },
    { does: 'an unknown event', spec: { url: 'https://example.com/', events: ['tunnel.exploded'] } },
    { does: 'an unknown field', spec: { url: 'https://example.com/', secret: 'whsec_x' } },
  ])('$does', async ({ spec }) => {
    await expect(bench.editor(APPLY, webhook('bad', spec))).rejects.toThrow(/spec\.?(url|events|secret)?|unknown field/)
  })
})

test('an address that no receiver may have is not ready, and its owner gets an Event', async () => {
  await bench.editor(APPLY, webhook('metadata', { url: 'http://169.254.169.254/latest' }))
  const reason = '.status.conditions[?(@.type=="Ready")].reason'
  await expect.poll(() => of('metadata', reason), LATER).toBe('AddressRefused')
  await expect.poll(() => bench.editor(['describe', 'tunnelwebhook', 'metadata']), LATER).toMatch(/Warning +AddressRefused/)
  await expect(viewer.kubectl(['delete', 'tunnelwebhook', 'metadata'])).rejects.toThrow(/[Ff]orbidden/)
})
