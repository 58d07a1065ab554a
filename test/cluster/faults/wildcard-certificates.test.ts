import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createCa, issueCertificate, type KeyPair } from '../../../operator/certificates/local-ca.ts'
import { encodeSecret } from '../../../operator/secret-data.ts'
import { EDGE_PORTS } from '../../../shared/edge-objects.ts'
import { ORDERS, type Pebble, startPebble } from '../../support/acme/pebble.ts'
import { addressBeside } from '../setup/addresses.ts'
import { clientsOf } from '../setup/commands.ts'
import { type Member, memberOf, openTenantNamespace } from '../setup/tenant.ts'
import { KUBECTL_WAIT, LATER } from '../../support/patience.ts'

/**
 * One certificate for all tunnels of an endpoint, without a key for DNS: the administrator's own TLS Secret, then a public CA by dns-persist-01.
 * Runs alone, like acme.test.ts.
 */

/** Tunnels are counted some seconds ago: their number must not keep the test from its end. */
const DELETABLE = { 'mooring.dev/allow-deletion': 'true' }
const apiVersion = 'mooring.dev/v1alpha1'
const ENDPOINT = `shared-${randomInt(1e6)}`
const DOMAIN = `${ENDPOINT}.test`
const REGION_ID = randomInt(1_000, 1_000_000)
const SECRET = `${ENDPOINT}-tls`
const APPLY = ['apply', '--filename', '-']
const clients = clientsOf(process.env.KUBECONFIG ?? '')
const { kubectl } = clients

const Status = z.object({
  acmeRecord: z.object({ name: z.string(), value: z.string() }).optional(),
  conditions: z.array(z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() })).default([]),
})

const opened = new AsyncDisposableStack()
let ca: KeyPair
let pebble: Pebble
let editor: Member
/** Address of the endpoint's edge. */
let edge: string
let hostname: string

/** Stores another certificate for the endpoint. */
async function give(): Promise<void> {
  const { certificate, key } = await issueCertificate({ ca, names: [`*.${DOMAIN}`], now: new Date() })
  const metadata = { name: SECRET, namespace: 'mooring-system' }
  const data = encodeSecret({ 'tls.crt': certificate, 'tls.key': key })
  await kubectl(APPLY, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', data })
}

async function endpointStatus() {
  const { status } = z
    .object({ status: Status.prefault({}) })
    .parse(JSON.parse(await kubectl(['get', 'tunnelendpoint', ENDPOINT, '--output', 'json'])))
  return { ...status, ready: status.conditions.find(({ type }) => type === 'Ready') }
}

/** Certificate that a visitor of the tunnel gets, verified with this root. */
async function presented(root: string) {
  const socket = connect({ host: edge, port: EDGE_PORTS.https, servername: `${hostname}.${DOMAIN}`, ca: root })
  await once(socket, 'secureConnect')
  const { serialNumber, subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return { serialNumber, subjectaltname }
}

const certificate = async (field: string) =>
  editor.kubectl(['get', 'tunnel', 'web', '--output', `jsonpath={.status.certificate.${field}}`])

beforeAll(async () => {
  const node = await clients.nodeAddress()
  ca = await createCa(new Date())
  pebble = opened.use(await startPebble({ httpPort: EDGE_PORTS.http, address: addressBeside(node) }))
  await give()
  opened.defer(async () => {
    await kubectl(['delete', 'secret', SECRET, '--namespace', 'mooring-system', '--wait=false'])
  })
  const region = randomUUID()
  const own = { certificates: 'wildcard', tlsSecretName: SECRET }
  const items = [
    {
      ...{ apiVersion, kind: 'Region', metadata: { name: ENDPOINT, annotations: DELETABLE } },
      spec: { id: region, regionId: REGION_ID, name: ENDPOINT, motors: [] },
    },
    {
      ...{ apiVersion, kind: 'TunnelEndpoint', metadata: { name: ENDPOINT, annotations: DELETABLE } },
      spec: { region, domain: DOMAIN, sshHost: node, replicas: 1, ...own },
    },
  ]
  await kubectl(APPLY, { apiVersion: 'v1', kind: 'List', items })
  opened.defer(async () => {
    await kubectl(['delete', `tunnelendpoint/${ENDPOINT}`, `region/${ENDPOINT}`, '--wait=false'])
  })
  const namespace = `${ENDPOINT}--prod`
  opened.use(await openTenantNamespace(kubectl, namespace))
  editor = opened.use(await memberOf(clients, { namespace, role: 'editor' }))
  await vi.waitFor(async () => expect((await endpointStatus()).ready).toMatchObject({ status: 'True' }), LATER)
  const pods = ['get', 'pods', '--namespace', 'mooring-system', '--selector', `mooring.dev/endpoint=${ENDPOINT}`]
  edge = await kubectl([...pods, '--output', 'jsonpath={.items[0].status.podIP}'])
  await editor.kubectl(APPLY, { apiVersion, kind: 'Tunnel', metadata: { name: 'web' }, spec: { regionId: REGION_ID } })
  await editor.kubectl(['wait', '--for=condition=Ready', 'tunnel/web', KUBECTL_WAIT])
  hostname = await editor.kubectl(['get', 'tunnel', 'web', '--output', 'jsonpath={.status.hostname}'])
})
afterAll(() => opened.disposeAsync())

test('the operator copies the administrator’s TLS Secret for the edges, and each later one', async () => {
  expect(await certificate('domain')).toBe(`*.${DOMAIN}`)
  const first = await vi.waitFor(() => presented(ca.certificate), LATER)
  expect(first.subjectaltname).toBe(`DNS:*.${DOMAIN}`)
  await give()
  await vi.waitFor(async () => expect(await presented(ca.certificate)).not.toEqual(first), LATER)
})

test('dns-persist-01 shows its record in the endpoint, and leads to a certificate once DNS has it', async () => {
  const acme = {
    ...{ directoryUrl: pebble.directoryUrl, agreeToTerms: true, challenge: 'dns-persist-01' },
    ...{ caBundle: pebble.authority.certificate, nameservers: [pebble.nameserver] },
  }
  const spec = { issuer: 'acme', tlsSecretName: null, acme }
  await kubectl(['patch', 'tunnelendpoint', ENDPOINT, '--type=merge', '-p', JSON.stringify({ spec })])
  const { acmeRecord, ready } = await vi.waitFor(async () => {
    const status = await endpointStatus()
    expect(status.ready).toMatchObject({ status: 'False', reason: 'DnsRecordMissing' })
    return status
  }, LATER)
  expect(acmeRecord).toMatchObject({ name: `_validation-persist.${DOMAIN}` })
  expect(ready?.message).toContain(acmeRecord?.value)
  expect(pebble.count(ORDERS)).toBe(0)
  await pebble.setText(acmeRecord?.name ?? '', acmeRecord?.value ?? '')
  await vi.waitFor(async () => expect(await certificate('issuer')).toMatch(/^Pebble/), LATER)
  const root = await pebble.root()
  await vi.waitFor(async () => expect((await presented(root)).subjectaltname).toBe(`DNS:*.${DOMAIN}`), LATER)
  await vi.waitFor(async () => expect((await endpointStatus()).ready).toMatchObject({ status: 'True' }), LATER)
  expect(pebble.count(ORDERS)).toBe(1)
})
