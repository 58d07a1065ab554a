import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { EDGE_PORTS } from '../../../shared/edge-objects.ts'
import { ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { addressBeside } from '../setup/addresses.ts'
import { clientsOf } from '../setup/commands.ts'
import { type Member, memberOf, openTenantNamespace } from '../setup/tenant.ts'
import { KUBECTL_WAIT, LATER } from '../../support/patience.ts'

/**
 * Certificates from a Pebble on this machine, which validates through the edges in the cluster. Runs alone: other tests would make their
 * tunnels in its region, whose edges no port of a node leads to.
 */

/** Tunnels are counted some seconds ago: their number must not keep the test from its end. */
const DELETABLE = { 'mooring.dev/allow-deletion': 'true' }
const apiVersion = 'mooring.dev/v1alpha1'
const ENDPOINT = `acme-${randomInt(1e6)}`
const REGION_ID = randomInt(1_000, 1_000_000)
const clients = clientsOf(process.env.KUBECONFIG ?? '')
const { kubectl } = clients

const opened = new AsyncDisposableStack()
let pebble: Pebble
let editor: Member
/** Addresses of the endpoint's edges. */
let edges: readonly string[]

beforeAll(async () => {
  const node = await clients.nodeAddress()
  pebble = opened.use(await startPebble({ httpPort: EDGE_PORTS.http, address: addressBeside(node) }))
  const region = randomUUID()
  const acme = {
    ...{ directoryUrl: pebble.directoryUrl, agreeToTerms: true, email: 'admin@example.test' },
    ...{ caBundle: pebble.authority.certificate, nameservers: [pebble.nameserver] },
  }
  const spec = { region, domain: `${ENDPOINT}.test`, sshHost: node, publicHttpPort: EDGE_PORTS.http, issuer: 'acme', acme }
  const items = [
    {
      apiVersion,
      kind: 'Region',
      metadata: { name: ENDPOINT, annotations: DELETABLE },
      spec: { id: region, regionId: REGION_ID, name: ENDPOINT, motors: [] },
    },
    { apiVersion, kind: 'TunnelEndpoint', metadata: { name: ENDPOINT, annotations: DELETABLE }, spec },
  ]
  await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'List', items })
  opened.defer(async () => {
    await kubectl(['delete', `tunnelendpoint/${ENDPOINT}`, `region/${ENDPOINT}`, '--wait=false'])
  })
  const namespace = `${ENDPOINT}--prod`
  opened.use(await openTenantNamespace(kubectl, namespace))
  editor = opened.use(await memberOf(clients, { namespace, role: 'editor' }))
  await vi.waitFor(async () => {
    const conditions = await kubectl(['get', 'tunnelendpoint', ENDPOINT, '--output', 'jsonpath={.status.conditions}'])
    const states = await kubectl(['get', 'pods', '--namespace', 'mooring-system', '--output', 'wide'])
    expect(JSON.parse(conditions || '[]'), states).toEqual([expect.objectContaining({ type: 'Ready', status: 'True' })])
  }, LATER)
  const pods = ['get', 'pods', '--namespace', 'mooring-system', '--selector', `mooring.dev/endpoint=${ENDPOINT}`]
  edges = await vi.waitFor(async () => {
    const found = (await kubectl([...pods, '--output', 'jsonpath={.items[*].status.podIP}'])).split(' ')
    expect(found).toHaveLength(2)
    return found
  }, LATER)
})
afterAll(() => opened.disposeAsync())

const certificateOf = async (name: string, path: string) =>
  editor.kubectl(['get', 'tunnel', name, '--output', `jsonpath={.status.certificate.${path}}`])

test.each([0, 1])('a tunnel gets its certificate when the CA asks edge %i, and that edge serves it', async (index) => {
  const edge = edges[index] ?? ''
  await pebble.resolveTo(edge)
  const name = `web-${index}`
  const before = pebble.count(ORDERS)
  await editor.kubectl(['apply', '--filename', '-'], {
    apiVersion,
    kind: 'Tunnel',
    metadata: { name },
    spec: { regionId: REGION_ID },
  })
  await vi.waitFor(async () => {
    const about = [await certificateOf(name, 'status'), await certificateOf(name, 'lastError')]
    expect(about).toEqual(['valid', ''])
  }, LATER)
  expect(pebble.count(ORDERS) - before).toBe(1)
  expect(await certificateOf(name, 'issuer')).toMatch(/^Pebble Intermediate CA/)
  await editor.kubectl(['wait', '--for=condition=Ready', `tunnel/${name}`, KUBECTL_WAIT])
  const host = await certificateOf(name, 'domain')
  const ca = await pebble.root()
  await vi.waitFor(async () => {
    const socket = connect({ host: edge, port: EDGE_PORTS.https, servername: host, ca })
    await once(socket, 'secureConnect')
    socket.destroy()
  }, LATER)
})

test('an editor can read neither the key of the account nor those of certificates, and cannot make an endpoint', async () => {
  const inSystem = ['get', 'secrets', '--namespace', 'mooring-system']
  await expect(editor.kubectl(inSystem)).rejects.toThrow(/[Ff]orbidden/)
  await expect(
    editor.kubectl(['patch', 'tunnelendpoint', ENDPOINT, '--type=merge', '-p', '{"spec":{"active":false}}']),
  ).rejects.toThrow(/[Ff]orbidden/)
  await expect(
    editor.kubectl([
      'patch',
      'tunnel',
      'web-0',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"certificate":{"status":"valid"}}}',
    ]),
  ).rejects.toThrow(/[Ff]orbidden/)
})
