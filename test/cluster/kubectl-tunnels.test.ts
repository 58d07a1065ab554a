import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { clientsOf } from './setup/commands.ts'
import { type Member, memberOf } from './setup/tenant.ts'
import { openTunnelBench, type TunnelBench } from './tunnels/bench.ts'
import { KUBECTL_WAIT, LATER } from '../support/patience.ts'

/** Tunnels with kubectl and ssh only, as an editor and as a viewer of one tenant's namespace. */

const apiVersion = 'mooring.dev/v1alpha1'
const APPLY = ['apply', '--filename', '-']
const FORBIDDEN = /Forbidden|forbidden/

let bench: TunnelBench
let viewer: Member
let hostname: string
beforeAll(async () => {
  bench = await openTunnelBench()
  viewer = await memberOf(clientsOf(process.env.KUBECONFIG ?? ''), { namespace: bench.namespace, role: 'viewer' })
  hostname = await bench.tunnel('web')
})
afterAll(async () => {
  await viewer[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

const tunnel = (name: string, spec: object = {}) => ({
  apiVersion,
  kind: 'Tunnel',
  metadata: { name },
  spec: { regionId: 1, ...spec },
})
const password = (name: string) => ({
  ...{ apiVersion, kind: 'TunnelPassword', metadata: { name } },
  spec: {
    ...{ tunnelRef: { name: 'web' }, sha256: '2'.repeat(64) },
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  },
})

/** Waits until a visitor of a tunnel gets the status `status`. */
const answers = (of: string, status: number) => vi.waitFor(async () => expect((await bench.visit(of)).status).toBe(status), LATER)

test('a tunnel of an editor is served with the editor’s key until its deletion, which frees the hostname', async () => {
  const own = await bench.tunnel('life')
  bench.connect(own)
  await answers(own, 200)
  await bench.editor(['delete', 'tunnel', 'life', KUBECTL_WAIT])
  await answers(own, 404)
})

test('an editor may read regions and endpoints, with SSH hosts and host keys', async () => {
  const read = (kind: string, path: string) => bench.editor(['get', kind, '--output', `jsonpath={${path}}`])
  expect(await read('regions', '.items[*].spec.regionId')).toContain('1')
  expect(await read('tunnelendpoint/default', '.spec.sshHost')).toBe(await clientsOf(process.env.KUBECONFIG ?? '').nodeAddress())
  expect(await read('tunnelendpoint/default', '.status.hostKeys[0]')).toMatch(/^ssh-ed25519 /)
})

test('`kubectl get mooring` shows an editor all resources of the namespace without an error', async () => {
  const lines = (await bench.editor(['get', 'mooring', '--output', 'name'])).split('\n')
  expect(lines).toEqual(expect.arrayContaining(['tunnel.mooring.dev/web', 'tunnelendpoint.mooring.dev/default']))
})

test('an editor creates and deletes temporary passwords; a viewer may only read them', async () => {
  await bench.editor(APPLY, password('once'))
  await bench.editor(['wait', '--for=condition=Ready', 'tunnelpassword/once', KUBECTL_WAIT])
  expect(await viewer.kubectl(['get', 'tunnelpasswords', '--output', 'name'])).toBe('tunnelpassword.mooring.dev/once')
  await expect(viewer.kubectl(APPLY, password('other'))).rejects.toThrow(FORBIDDEN)
  await expect(viewer.kubectl(['delete', 'tunnelpassword', 'once'])).rejects.toThrow(FORBIDDEN)
  await bench.editor(['delete', 'tunnelpassword', 'once', KUBECTL_WAIT])
  expect(await bench.editor(['get', 'tunnelpasswords', '--output', 'name'])).toBe('')
})

const LIE = JSON.stringify({ status: { hostname: '0'.repeat(16), url: 'https://evil.example' } })
const PATCH = ['patch', 'tunnel', 'web', '--type=merge', '--patch', LIE]
const OF_STATUS = '--subresource=status'

describe('an editor may not', () => {
  test.each<{ does: string; args: () => readonly string[] }>([
    { does: 'write the status of a tunnel', args: () => [...PATCH, OF_STATUS] },
    { does: 'see tunnels of other namespaces', args: () => ['get', 'tunnels', '--namespace', 'default'] },
    { does: 'see all tunnels', args: () => ['get', 'tunnels', '--all-namespaces'] },
    { does: 'see other tenants', args: () => ['get', 'tenantnamespaces'] },
    { does: 'change an endpoint', args: () => ['patch', 'tunnelendpoint', 'default', '--type=merge', '--patch', '{"spec":{}}'] },
    { does: 'list Secrets', args: () => ['get', 'secrets'] },
    {
      does: 'read the key of their own certificate',
      args: () => ['get', 'secret', `tunnel-${hostname}-certificate`, '--namespace', 'mooring-system'],
    },
  ])('$does', async ({ args }) => {
    await expect(bench.editor(args())).rejects.toThrow(FORBIDDEN)
  })

  test('change the status together with the spec', async () => {
    // The API server ignores status fields in writes of the main resource (subresource "status").
    await bench.editor(PATCH)
    expect(await bench.editor(['get', 'tunnel', 'web', '--output', 'jsonpath={.status.hostname}'])).toBe(hostname)
  })
})

describe('a viewer', () => {
  test('sees tunnels and their status', async () => {
    const seen = await viewer.kubectl(['get', 'tunnel', 'web', '--output', 'jsonpath={.status.hostname}'])
    expect(seen).toBe(hostname)
  })

  test.each<{ does: string; args: readonly string[]; input?: object }>([
    { does: 'makes no tunnel', args: APPLY, input: tunnel('viewed') },
    { does: 'changes no tunnel', args: APPLY, input: tunnel('web', { config: { httpsOnly: true } }) },
    { does: 'deletes no tunnel', args: ['delete', 'tunnel', 'web'] },
    { does: 'writes no status', args: [...PATCH, OF_STATUS] },
    { does: 'lists no Secrets', args: ['get', 'secrets'] },
    { does: 'reads no Secret', args: ['get', 'secret', 'any'] },
  ])('$does', async ({ args, input }) => {
    await expect(viewer.kubectl(args, input)).rejects.toThrow(FORBIDDEN)
  })
})

describe('a failure is reported as an Event', () => {
  const describing = (kubectl: Member['kubectl'], kind: string, name: string, says: RegExp) =>
    expect.poll(() => kubectl(['describe', kind, name]), LATER).toMatch(says)

  test('of a tunnel, visible to the members of its namespace, and only once despite repeated checks', async () => {
    await bench.editor(APPLY, tunnel('failing', { regionId: 999 }))
    for (let round = 1; round <= 6; round++)
      await bench.editor(APPLY, tunnel('failing', { regionId: 999, displayName: `failing ${round}` }))
    const generation = await bench.editor(['get', 'tunnel', 'failing', '--output', 'jsonpath={.metadata.generation}'])
    const observed = `--for=jsonpath={.status.observedGeneration}=${generation}`
    await bench.editor(['wait', observed, 'tunnel/failing', KUBECTL_WAIT])
    for (const { kubectl } of [{ kubectl: bench.editor }, viewer]) {
      await describing(kubectl, 'tunnel', 'failing', /Warning +UnknownRegion .*there is no region 999/)
      const events = await kubectl(['get', 'events', '--field-selector', 'involvedObject.name=failing', '--no-headers'])
      expect(events.split('\n')).toHaveLength(1)
    }
  })

  test('of a tunnel with an unusable key', async () => {
    const config = { authorizedKeys: [`ssh-ed25519 ${'A'.repeat(60)}`] }
    await bench.editor(APPLY, tunnel('unusable', { config }))
    await describing(bench.editor, 'tunnel', 'unusable', /Warning +UnusableKey .*must be a whole key.*authorizedKeys\[0\]/)
  })

  test('of a tunnel in a Namespace without labels, which is served once it has those that the Event names', async () => {
    const organization = `plain-${Date.now().toString(36)}`
    const inPlain = ['--namespace', `${organization}--prod`]
    const labels = [`mooring.dev/organization=${organization}`, 'mooring.dev/namespace=prod']
    const because = new RegExp(`Warning +NoAccess .*has no label ${labels.join(' and has no label ')}`)
    await bench.kubectl(['create', 'namespace', `${organization}--prod`])
    await bench.kubectl([...APPLY, ...inPlain], tunnel('web'))
    await describing((args) => bench.kubectl([...args, ...inPlain]), 'tunnel', 'web', because)
    const hostname = ['get', 'tunnel', 'web', '--output', 'jsonpath={.status.hostname}', ...inPlain]
    expect(await bench.kubectl(hostname)).toBe('')

    await bench.kubectl(['label', 'namespace', `${organization}--prod`, ...labels])
    await bench.kubectl(['wait', '--for=condition=Ready', 'tunnel/web', KUBECTL_WAIT, ...inPlain])
    await bench.kubectl(['delete', 'tenantnamespace', `${organization}--prod`, '--wait=false'])
    await bench.kubectl(['delete', 'organization', organization, '--wait=false'])
  })

  test('and a valid tunnel has no Event', async () => {
    // ReconcileFailed may report a short outage of the API server.
    const selector = 'involvedObject.name=web,reason!=ReconcileFailed'
    expect(await bench.editor(['get', 'events', '--field-selector', selector, '--output', 'name'])).toBe('')
  })

  test('of an endpoint, visible to administrators', async () => {
    const name = `events-${Date.now().toString(36)}`
    const spec = { region: randomUUID(), domain: `${name}.test`, sshHost: `${name}.test`, active: false, replicas: 0 }
    await bench.kubectl(APPLY, { apiVersion, kind: 'TunnelEndpoint', metadata: { name }, spec })
    try {
      await describing(bench.kubectl, 'tunnelendpoint', name, /Warning +UnknownRegion .*there is no region/)
    } finally {
      await bench.kubectl(['delete', 'tunnelendpoint', name, KUBECTL_WAIT])
    }
  })
})
