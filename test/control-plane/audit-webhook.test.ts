import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { createValueDigest } from '../../journal/audit-entry.ts'
import { startAuditListener } from '../../apiserver/journal/audit-webhook.ts'
import type { AuditRecord } from '../../journal/port.ts'
import { createCa, issueCertificate } from '../../operator/certificates/local-ca.ts'
import { keepAuditWebhook } from '../../operator/installation/audit-webhook.ts'
import { REGION_ID } from '../builders/resources.ts'
import { createLines } from '../support/api/http-app.ts'
import { binaries, type ControlPlane, startControlPlane, eventually } from './support/control-plane.ts'
import { LATER } from '../support/patience.ts'

/** Audit webhook of the chart with a real API server, which selects the requests that it reports. */

const run = promisify(execFile)
const TENANT = ['mooring.dev/organization=acme', 'mooring.dev/namespace=prod']
const PATH = '/audit/known'
const ACCOUNTS = 'system:serviceaccount:mooring-system:'

const cleanup = new AsyncDisposableStack()
const entries: AuditRecord[] = []
const { log, lines } = createLines()
let plane: ControlPlane
let bin: string

const kubectl = async (...args: readonly string[]) =>
  (await run(join(bin, 'kubectl'), [`--kubeconfig=${plane.kubeconfig}`, ...args])).stdout
async function apply(object: object, ...args: readonly string[]): Promise<void> {
  const file = join(dirname(plane.kubeconfig), 'object.json')
  await writeFile(file, JSON.stringify(object))
  await kubectl('apply', '-f', file, ...args)
}
const tunnel = (name: string, spec: object = {}, namespace = 'acme--prod') => ({
  ...{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', metadata: { name, namespace }, spec: { regionId: 1, ...spec } },
})
const of = (name: string) => entries.filter(({ resource }) => resource.name === name)
const actionsOf = (name: string) => of(name).map(({ action }) => action)

const Rendered = z.looseObject({ kind: z.string(), webhooks: z.array(z.looseObject({})).optional() })

beforeAll(async () => {
  ;[plane, bin] = await Promise.all([startControlPlane(), binaries()])
  cleanup.use(plane)
  const ca = await createCa(new Date())
  const certificate = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
  const listener = cleanup.use(
    await startAuditListener({
      ...{ host: '127.0.0.1', port: 0, certificate: () => certificate, path: () => PATH, log, now: () => new Date() },
      digest: () => createValueDigest(Buffer.alloc(32)),
      journal: { audit: async (record) => void entries.push(record) },
    }),
  )
  const chart = ['template', 'mooring', 'charts/mooring', '--namespace', 'mooring-system']
  const { stdout } = await run(join(bin, 'helm'), [...chart, '--show-only', 'templates/apiserver/audit.yaml'])
  const objects = parseAllDocuments(stdout).map((document) => Rendered.parse(document.toJS()))
  const configuration = objects.find(({ kind }) => kind === 'ValidatingWebhookConfiguration')
  if (!configuration) throw new Error('the chart has no webhook')
  await apply(configuration)
  const kept = await keepAuditWebhook({ client: plane.store().client, ca: ca.certificate, path: PATH, log })
  await kept[Symbol.asyncDispose]()
  const clientConfig = 'jsonpath={.webhooks[0].clientConfig}'
  const completed = JSON.parse(
    await kubectl('get', 'validatingwebhookconfiguration', 'mooring-audit', '-o', clientConfig),
  ) as object
  const caBundle = Buffer.from(ca.certificate).toString('base64')
  expect(completed).toEqual({ caBundle, service: { namespace: 'mooring-system', name: 'mooring-audit', path: PATH, port: 443 } })

  // The control plane has no Service network, so the webhook is called by URL.
  const url = `https://127.0.0.1:${listener.port}${PATH}`
  await apply({
    ...configuration,
    webhooks: configuration.webhooks?.map((each) => ({ ...each, clientConfig: { url, caBundle } })),
  })
  for (const namespace of ['acme--prod', 'plain', 'mooring-system']) await kubectl('create', 'namespace', namespace)
  await kubectl('label', 'namespace', 'acme--prod', ...TENANT)
  for (const account of ['mooring-apiserver', 'mooring-operator'])
    await kubectl('create', 'clusterrolebinding', account, '--clusterrole=cluster-admin', `--user=${ACCOUNTS}${account}`)
  // A webhook configuration takes effect some time after its creation.
  let tries = 0
  await eventually(async () => {
    await apply(tunnel(`first-${++tries}`))
    return entries.length > 0
  })
})
afterAll(() => cleanup.disposeAsync())

test('the webhook records each creation, change and deletion by kubectl with its user, and no other request', async () => {
  await apply(tunnel('web'))
  await apply(tunnel('web', { config: { httpsOnly: true } }))
  await kubectl('annotate', 'tunnel', 'web', 'team=db', '-n', 'acme--prod')
  await kubectl(
    'patch',
    'tunnel',
    'web',
    '-n',
    'acme--prod',
    '--subresource=status',
    '--type=merge',
    '-p',
    '{"status":{"sessions":1}}',
  )
  await apply(tunnel('web', { config: { httpsOnly: false } }), '--dry-run=server')
  await kubectl('delete', 'tunnel', 'web', '-n', 'acme--prod', '--as=ada', '--as-group=system:masters')
  await vi.waitFor(() => expect(actionsOf('web')).toEqual(['create', 'update', 'delete']), LATER)
  const [created, updated, deleted] = of('web')
  expect(created).toMatchObject({ namespace: 'acme--prod', via: 'kubectl', actor: { name: 'admin', kind: 'user' } })
  expect(updated?.changes).toEqual([{ path: 'config.httpsOnly', from: false, to: true }])
  expect(deleted).toMatchObject({ actor: { name: 'ada', kind: 'user' }, resource: created?.resource })
  expect(of('web').map(({ generation }) => generation)).toEqual([1, 2, null])
  expect(created?.resource.id).toMatch(/^[0-9a-f-]{36}$/)
})

test('the entry of a database has its identifier as name, as with REST', async () => {
  const metadata = { name: 'by-hand', namespace: 'acme--prod' }
  const spec = { identifier: 'PR #7', region: REGION_ID, motor: 'postgresql-15.4.0' }
  await apply({ apiVersion: 'mooring.dev/v1alpha1', kind: 'SharedInstance', metadata, spec })
  await vi.waitFor(() => expect(of('PR #7')).toMatchObject([{ action: 'create', resource: { kind: 'SharedInstance' } }]), {
    timeout: 60_000,
  })
  expect(of('by-hand')).toEqual([])
})

const binding = (name: string, role: string, subjects: readonly string[]) => ({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name, namespace: 'acme--prod' } },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: subjects.map((subject) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: subject })),
})

test('the webhook records members by their subjects, and no other RoleBindings', async () => {
  await kubectl('create', 'clusterrole', 'mooring-viewer', '--verb=get', '--resource=tunnels.mooring.dev')
  await apply(binding('other', 'view', ['local:eve']))
  await apply(binding('bob', 'mooring-viewer', ['local:bob']))
  await apply(binding('bob', 'mooring-viewer', ['local:bob', 'local:carol']))
  await kubectl('annotate', 'rolebinding', 'bob', 'team=db', '-n', 'acme--prod')
  await kubectl('delete', 'rolebinding', 'bob', '-n', 'acme--prod')
  const recorded = () => entries.filter(({ resource }) => resource.kind === 'Member')
  await vi.waitFor(() => expect(recorded()).toHaveLength(3), LATER)
  const common = { namespace: 'acme--prod', via: 'kubectl', actor: { name: 'admin' } }
  expect(recorded()).toMatchObject([
    {
      ...common,
      action: 'create',
      resource: { id: 'local:bob' },
      changes: [{ path: 'subject' }, { path: 'role', to: 'viewer' }],
    },
    { ...common, action: 'update', changes: [{ path: 'subject', from: 'local:bob', to: 'local:bob, local:carol' }] },
    { ...common, action: 'delete' },
  ])
})

test('the webhook records organizations and their namespaces under the organization', async () => {
  const common = { apiVersion: 'mooring.dev/v1alpha1' }
  await apply({ ...common, kind: 'Organization', metadata: { name: 'zeta' }, spec: { name: 'Zeta' } })
  const spec = { organization: 'zeta', namespace: 'dev', displayName: 'Development' }
  await apply({ ...common, kind: 'TenantNamespace', metadata: { name: 'zeta--dev' }, spec })
  await kubectl('delete', 'tenantnamespace', 'zeta--dev')
  const recorded = () =>
    entries.filter(({ namespace }) => namespace === 'organization/zeta').map(({ action, resource }) => [action, resource.name])
  await vi.waitFor(
    () =>
      expect(recorded()).toEqual([
        ['create', 'zeta'],
        ['create', 'zeta/dev'],
        ['delete', 'zeta/dev'],
      ]),
    LATER,
  )
  expect(entries.filter(({ namespace }) => namespace === 'zeta--dev')).toMatchObject([
    { action: 'create', changes: [{ path: 'name', to: 'Development' }, { path: 'slug', to: 'dev' }, { path: 'organization' }] },
    { action: 'delete' },
  ])
})

test('the webhook records neither writes of Mooring itself nor resources outside of tenants’ namespaces', async () => {
  for (const account of ['mooring-apiserver', 'mooring-operator']) await apply(tunnel(account), `--as=${ACCOUNTS}${account}`)
  await apply(tunnel('elsewhere', {}, 'plain'))
  await apply(tunnel('last'))
  await vi.waitFor(() => expect(actionsOf('last')).toEqual(['create']), LATER)
  expect(['mooring-apiserver', 'mooring-operator', 'elsewhere'].flatMap(actionsOf)).toEqual([])
})

test('writes succeed while the webhook is unreachable', async () => {
  const patch = JSON.stringify([{ op: 'replace', path: '/webhooks/0/clientConfig/url', value: 'https://127.0.0.1:1/audit' }])
  await kubectl('patch', 'validatingwebhookconfiguration', 'mooring-audit', '--type=json', '-p', patch)
  await apply(tunnel('unheard'))
  expect(await kubectl('get', 'tunnel', 'unheard', '-n', 'acme--prod', '-o', 'name')).toBe('tunnel.mooring.dev/unheard\n')
  expect(lines).toEqual([])
})
