import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Kind } from '../../crds/kind.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { annotations as names, FINALIZER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { Region } from '../../crds/region.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import type { KubernetesStore } from '../../store/kubernetes.ts'
import { binaries, type ControlPlane, startControlPlane, eventually } from './support/control-plane.ts'

const run = promisify(execFile)
const OPERATOR = 'system:serviceaccount:mooring-system:mooring-operator'
const LEVEL = 'pod-security.kubernetes.io/enforce'
const TENANT = { 'mooring.dev/organization': 'acme', 'mooring.dev/namespace': 'prod' }

let plane: ControlPlane
let bin: string
beforeAll(async () => {
  ;[plane, bin] = await Promise.all([startControlPlane(), binaries()])
  const chart = ['template', 'mooring', 'charts/mooring', '--namespace', 'mooring-system']
  const files = ['operator/admission', 'uninstall/admission', 'deletions', 'namespace-shared']
  const policies = files.flatMap((name) => ['--show-only', `templates/${name}.yaml`])
  const { stdout } = await run(join(bin, 'helm'), [...chart, ...policies])
  const file = join(dirname(plane.kubeconfig), 'admission.yaml')
  await writeFile(file, stdout)
  await kubectl('apply', '-f', file)
  // cluster-admin lets the operator do everything in RBAC, so that only the admission policy can deny a request.
  await kubectl('create', 'clusterrolebinding', 'operator', '--clusterrole=cluster-admin', `--user=${OPERATOR}`)
  await kubectl('create', 'namespace', 'mooring-system')
  await kubectl('label', 'namespace', 'mooring-system', `${LEVEL}=restricted`)
  await kubectl('create', 'namespace', 'plain')
  await kubectl('create', 'namespace', 'some--body')
  await kubectl('create', 'namespace', 'acme--prod')
  await kubectl('label', 'namespace', 'acme--prod', ...labelsOf(TENANT))
  await kubectl('create', 'namespace', 'not--acme')
  await kubectl('label', 'namespace', 'not--acme', ...labelsOf(TENANT))
  // A policy takes effect some time after its creation.
  await eventually(async () => !(await may(['create', 'rolebinding', 'x', '--clusterrole=view', '--user=x', '-n', 'plain'])))
})
afterAll(() => plane[Symbol.asyncDispose]())

const labelsOf = (labels: Readonly<Record<string, string>>) => Object.entries(labels).map(([name, value]) => `${name}=${value}`)

const kubectl = (...args: readonly string[]) => run(join(bin, 'kubectl'), [`--kubeconfig=${plane.kubeconfig}`, ...args])

const DENIED = /the operator may touch only the namespaces of tenants|the operator may not weaken the pod security/

/** Whether the policy allows a request of the operator, as a dry run. @throws any error but a denial by the policy */
async function may(args: readonly string[]): Promise<boolean> {
  try {
    await kubectl(`--as=${OPERATOR}`, '--dry-run=server', ...args)
    return true
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    if (!DENIED.test(stderr)) throw error
    return false
  }
}

const bind = (namespace: string) => ['create', 'rolebinding', 'b', '--clusterrole=view', '--user=x', '-n', namespace]
const label = (namespace: string, labels: Readonly<Record<string, string>>) => [
  ...['label', '--overwrite', 'namespace', namespace],
  ...labelsOf(labels),
]

test.each([
  { what: 'bind in a tenant’s namespace', args: bind('acme--prod'), allowed: true },
  { what: 'bind in a namespace that is only named like a tenant’s', args: bind('some--body'), allowed: false },
  { what: 'bind in a namespace with the labels of another namespace', args: bind('not--acme'), allowed: false },
  { what: 'bind in kube-system', args: bind('kube-system'), allowed: false },
  { what: 'delete a tenant’s namespace', args: ['delete', 'namespace', 'acme--prod'], allowed: true },
  { what: 'delete a namespace that is only named like a tenant’s', args: ['delete', 'namespace', 'some--body'], allowed: false },
  { what: 'create a namespace without labels', args: ['create', 'namespace', 'new--one'], allowed: false },
  {
    what: 'add the labels of a tenant to a namespace without them',
    args: label('some--body', { 'mooring.dev/organization': 'some', 'mooring.dev/namespace': 'body' }),
    allowed: false,
  },
  { what: 'change the labels of a tenant’s namespace', args: label('acme--prod', { team: 'db' }), allowed: true },
  { what: 'change the tenant of a namespace', args: label('acme--prod', { 'mooring.dev/namespace': 'test' }), allowed: false },
  { what: 'label its own namespace', args: label('mooring-system', { a: 'b' }), allowed: true },
  {
    what: 'weaken the pod security of its own namespace',
    args: label('mooring-system', { [LEVEL]: 'baseline' }),
    allowed: false,
  },
])('whether the operator may $what: $allowed', async ({ args, allowed }) => {
  expect(await may(args)).toBe(allowed)
})

test('the operator may create a tenant’s namespace and restore a removed label', async () => {
  const file = join(dirname(plane.kubeconfig), 'namespace.json')
  const metadata = { name: 'new--two', labels: { 'mooring.dev/organization': 'new', 'mooring.dev/namespace': 'two' } }
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }))
  expect(await may(['create', '-f', file])).toBe(true)
  await kubectl('create', '-f', file)
  await kubectl('label', 'namespace', 'new--two', 'mooring.dev/namespace-')
  expect(await may(label('new--two', { 'mooring.dev/namespace': 'two' }))).toBe(true)
})

test('the policy does not apply to other users', async () => {
  await kubectl('--dry-run=server', ...bind('plain'))
})

describe('in mooring-system, where RBAC allows the operator everything,', () => {
  const here = ['-n', 'mooring-system']
  /** Whether the policy allows a request of the operator in mooring-system. @throws any error but a denial by the policy */
  async function mayHere(args: readonly string[], object?: object): Promise<boolean> {
    const file = join(dirname(plane.kubeconfig), 'object.json')
    if (object) await writeFile(file, JSON.stringify(object))
    try {
      await kubectl(`--as=${OPERATOR}`, '--dry-run=server', ...args, ...(object ? ['-f', file] : []), ...here)
      return true
    } catch (error) {
      const { stderr = '' } = error as { stderr?: string }
      if (!/the operator may (touch only|run pods only|let edges read|bind only)/.test(stderr)) throw error
      return false
    }
  }
  const role = (rules: readonly object[], name = 'edge-eu') => ({
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' },
    ...{ metadata: { name, namespace: 'mooring-system' }, rules },
  })
  const secrets = (resourceNames?: readonly string[], verbs = ['get']) => ({
    ...{ apiGroups: [''], resources: ['secrets'], verbs },
    ...(resourceNames && { resourceNames }),
  })
  const slices = { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list'] }
  const thousands = Array.from({ length: 10_000 }, (_, index) => `tunnel-${index.toString(16).padStart(16, '0')}-certificate`)

  test.each([
    { what: 'the Role of edges', object: role([slices, secrets(['tunnel-0011223344556677-certificate'])]), allowed: true },
    { what: 'a Role for ten thousand certificates', object: role([slices, secrets(thousands)]), allowed: true },
    { what: 'a Role for a wildcard certificate', object: role([secrets(['endpoint-eu-certificate'])]), allowed: true },
    { what: 'a Role for the certificate of unknown hosts', object: role([secrets(['endpoint-eu-strangers'])]), allowed: true },
    { what: 'a Role for host keys', object: role([secrets(['endpoint-eu-host-keys'])]), allowed: false },
    { what: 'a Role for every Secret', object: role([secrets()]), allowed: false },
    { what: 'a Role that lists Secrets', object: role([secrets(['tunnel-a-certificate'], ['get', 'list'])]), allowed: false },
    { what: 'a Role for pods', object: role([{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]), allowed: false },
    { what: 'a Role of another name', object: role([slices], 'other'), allowed: false },
  ])('whether the operator may create $what: $allowed', async ({ object, allowed }) => {
    expect(await mayHere(['create'], object)).toBe(allowed)
  })

  test.each([
    { what: 'a certificate', args: ['create', 'secret', 'generic', 'tunnel-a-certificate'], allowed: true },
    { what: 'the Secret of its CA', args: ['create', 'secret', 'generic', 'mooring-ca'], allowed: true },
    { what: 'a login to the journal', args: ['create', 'secret', 'generic', 'journal-edge'], allowed: true },
    { what: 'an unrelated Secret', args: ['create', 'secret', 'generic', 'registry'], allowed: false },
    { what: 'a service account of edges', args: ['create', 'serviceaccount', 'edge-eu'], allowed: true },
    { what: 'another service account', args: ['create', 'serviceaccount', 'other'], allowed: false },
    {
      what: 'a binding of edges',
      args: ['create', 'rolebinding', 'edge-eu', '--role=edge-eu', '--serviceaccount=mooring-system:edge-eu'],
      allowed: true,
    },
    {
      what: 'a binding of a ClusterRole',
      args: ['create', 'rolebinding', 'edge-eu', '--clusterrole=view', '--serviceaccount=mooring-system:edge-eu'],
      allowed: false,
    },
    {
      what: 'a binding of another user',
      args: ['create', 'rolebinding', 'edge-eu', '--role=edge-eu', '--user=somebody'],
      allowed: false,
    },
  ])('whether the operator may create $what: $allowed', async ({ args, allowed }) => {
    expect(await mayHere(args)).toBe(allowed)
  })
})

describe('a deletion is refused', () => {
  const UNINSTALL = 'system:serviceaccount:mooring-system:mooring-uninstall'
  const REGION = '7b3f5a52-93c4-4f0e-9d0a-6c1d9a1f2e10'
  const SPECS = new Map<Kind, object>([
    [Region, { id: REGION, regionId: 1, name: 'here' }],
    [TunnelEndpoint, { region: REGION, domain: 't.test', sshHost: 't.test' }],
  ])
  interface Guarded {
    readonly kind: Kind
    readonly status?: object
    readonly annotations?: Readonly<Record<string, string>>
  }

  /** Creates an object with a status. @returns its name */
  async function guarded({ kind, status, annotations = {} }: Guarded): Promise<string> {
    const name = `a${randomUUID()}`
    await store.create(kind, { metadata: { name, annotations }, spec: SPECS.get(kind) })
    if (status) await store.patchStatus(kind, { name }, status)
    return name
  }

  /** Tries to delete a new object. @returns the message of the refusal; undefined when it is deleted */
  async function refusalOf(about: Guarded): Promise<string | undefined> {
    const { group, version, plural } = about.kind
    const path = `/apis/${group}/${version}/${plural}/${await guarded(about)}`
    const { status, body } = await store.client.request({ method: 'DELETE', path })
    return status < 300 ? undefined : (body as { readonly message: string }).message
  }

  let store: KubernetesStore
  beforeAll(async () => {
    store = plane.store()
    await eventually(async () => (await refusalOf({ kind: Region, status: { tunnels: 1 } })) !== undefined)
  })

  test.each([
    { kind: TunnelEndpoint, status: { tunnels: 2 }, has: 'this TunnelEndpoint has 2 tunnels, 0 databases' },
    { kind: TunnelEndpoint, status: { databases: 1 }, has: 'has 0 tunnels, 1 databases' },
    { kind: Region, status: { instances: 3 }, has: 'this Region has 3 instances, 0 databases, 0 tunnels' },
    { kind: Region, status: { databases: 1 }, has: 'mooring.dev/allow-deletion=true' },
    { kind: Region, status: { tunnels: 1 }, has: '1 tunnels' },
  ])('of a $kind.kind with $status', async ({ has, ...about }) => {
    expect(await refusalOf(about)).toContain(has)
  })

  test.each<Guarded & { readonly when: string }>([
    { when: 'without tunnels', kind: TunnelEndpoint, status: { tunnels: 0 } },
    { when: 'without a status', kind: Region },
    { when: 'with the annotation', kind: Region, status: { tunnels: 1 }, annotations: { [names.allowDeletion]: 'true' } },
  ])('but not of a $kind.kind $when', async (about) => {
    expect(await refusalOf(about)).toBeUndefined()
  })

  describe('of a database', () => {
    const NAMESPACE = 'acme--prod'
    /** Creates a database, which has been created on its server if it has a `name`. @returns its name */
    async function made(status?: object, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
      const key = { namespace: NAMESPACE, name: `a${randomUUID()}` }
      const spec = { motor: 'postgresql-15.4.0', region: REGION, plan: 'small' } as const
      await store.create(DedicatedDatabase, { metadata: { ...key, annotations, finalizers: [FINALIZER] }, spec })
      if (status) await store.patchStatus(DedicatedDatabase, key, status)
      return key.name
    }
    const remove = (name: string, ...more: readonly string[]) =>
      kubectl('delete', 'ddb', name, '--namespace', NAMESPACE, '--wait=false', ...more)
    const REFUSED = /this database may hold data.* --namespace acme--prod mooring.dev\/allow-deletion=true/

    test('with data by kubectl, and not by the API server, with the annotation, or twice', async () => {
      const isRefused = async (name: string) =>
        remove(name).then(
          () => false,
          (error: unknown) => REFUSED.test(String((error as { stderr?: string }).stderr)),
        )
      // A policy takes effect some time after its creation.
      await eventually(async () => isRefused(await made({ name: 'orders' })))
      for (const account of ['mooring-apiserver', 'mooring-operator']) {
        await remove(
          await made({ name: 'orders' }),
          `--as=system:serviceaccount:mooring-system:${account}`,
          '--as-group=system:masters',
        )
      }
      const annotated = await made({ name: 'orders' }, { [names.allowDeletion]: 'true' })
      await remove(annotated)
      await remove(annotated)
      await remove(await made())
    })
  })

  test('but not by the hook of helm uninstall', async () => {
    const name = await guarded({ kind: Region, status: { instances: 1 } })
    await kubectl('delete', 'region', name, `--as=${UNINSTALL}`, '--as-group=system:masters')
  })
})

test('the Namespace of database servers can be deleted without its annotation only while it has none', async () => {
  const remove = () => kubectl('delete', 'namespace', SHARED_NAMESPACE, '--dry-run=server')
  const isRefused = async (): Promise<boolean> => {
    try {
      await remove()
      return false
    } catch (error) {
      expect((error as { readonly stderr?: string }).stderr).toMatch(/has the database server one.*mooring.dev\/delete-data=true/)
      return true
    }
  }
  await remove()
  const spec = { motor: 'postgresql-15.4.0', region: randomUUID(), tenancy: 'shared', capacity: 50 } as const
  await plane.store().create(DatabaseServer, { metadata: { namespace: SHARED_NAMESPACE, name: 'one' }, spec })
  await eventually(isRefused)
  await kubectl('annotate', 'namespace', SHARED_NAMESPACE, `${names.deleteData}=true`)
  await remove()
})

describe('the hook of helm uninstall', () => {
  const system = ['-n', 'mooring-system']
  const begin = (name = 'mooring-uninstall-data') => kubectl('create', 'job', name, '--image=x', '--dry-run=server', ...system)
  const become = (status: 'True' | 'False') =>
    kubectl(
      ...['patch', 'deployment', 'mooring-operator', '--subresource=status', '--type=merge', ...system],
      ...['--patch', JSON.stringify({ status: { conditions: [{ type: 'Available', status }] } })],
    )
  const scale = (replicas: number) => kubectl('scale', 'deployment', 'mooring-operator', `--replicas=${replicas}`, ...system)
  const outcome = async (): Promise<string> => {
    try {
      await begin()
      return 'begins'
    } catch (error) {
      return (error as { readonly stderr?: string }).stderr ?? ''
    }
  }
  // An admission policy sees a change of the Deployment some time later.
  const rejected = () => eventually(async () => /the operator is not available.*--no-hooks/.test(await outcome()))

  test('is rejected at once while the operator has never run, and runs after that, also again', async () => {
    await kubectl('create', 'deployment', 'mooring-operator', '--image=x', ...system)
    await rejected()
    await begin('another')
    await become('True')
    await eventually(async () => (await outcome()) === 'begins')
    await become('False')
    await rejected()
    await scale(0)
    await eventually(async () => (await outcome()) === 'begins')
  })
})
