import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientsOf } from './setup/kubectl.ts'
import { openTunnelTenant, type TunnelTenant } from './setup/tunnel-tenant.ts'

/** What the operator's RBAC would let it do, and the admission policies of the chart do not. */

const TENANT = `policies-${Date.now().toString(36)}--prod`
const SYSTEM = 'mooring-system'
const SHARED = 'mooring-shared'
const OPERATOR = `system:serviceaccount:${SYSTEM}:mooring-operator`

const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
let tenant: TunnelTenant
beforeAll(async () => {
  tenant = await openTunnelTenant(TENANT)
})
afterAll(() => tenant[Symbol.asyncDispose]())

describe('the operator, whose RBAC would let it into every namespace, is kept to those of tenants', () => {
  const as = ['--as', OPERATOR, '--dry-run=server']
  const bind = (namespace: string) =>
    kubectl(
      [
        'create',
        'rolebinding',
        'taken',
        '--clusterrole',
        'mooring-tenant-operator',
        '--user',
        'x',
        '--namespace',
        namespace,
      ].concat(as),
    )

  test('it binds Secrets in a tenant’s namespace', async () => {
    expect(await bind(TENANT)).toContain('created')
  })

  test.each(['kube-system', 'default', SYSTEM])('it cannot bind itself those of %s', async (namespace) => {
    // In its own namespace two policies refuse it, and either may be the one that is told.
    await expect(bind(namespace)).rejects.toThrow(/the operator may touch only/)
  })

  // The API server itself keeps others from kube-system, kube-public and default.
  test.each(['kube-node-lease', SYSTEM, SHARED])('it cannot delete the Namespace %s', async (namespace) => {
    await expect(kubectl(['delete', 'namespace', namespace, ...as])).rejects.toThrow(/only the namespaces of tenants/)
  })

  test('it cannot label somebody’s Namespace', async () => {
    const label = kubectl(['label', 'namespace', 'kube-system', 'mooring.dev/organization=x', ...as])
    await expect(label).rejects.toThrow(/only the namespaces of tenants/)
  })
})

describe('the operator, whose RBAC would let it have all of its own namespace, is kept to what it makes itself', () => {
  const as = ['--as', OPERATOR, '--dry-run=server', '--namespace', SYSTEM]

  test('it may delete what belongs to edges', async () => {
    expect(await kubectl(['delete', 'deployment', 'edge-default', ...as])).toContain('deleted')
    expect(await kubectl(['delete', 'secret', tenant.certificate, ...as])).toContain('deleted')
  })

  test.each([
    ['delete', 'deployment', 'mooring-operator'],
    ['delete', 'deployment', 'mooring-apiserver'],
    ['delete', 'secret', 'mooring-ca'],
    ['create', 'serviceaccount', 'somebody'],
    ['create', 'secret', 'generic', 'somebodys', '--from-literal=a=b'],
  ])('it cannot %s the %s %s', async (...what) => {
    await expect(kubectl([...what, ...as])).rejects.toThrow(/may touch only what it makes itself/)
  })

  test.each([
    {
      does: 'let edges read every Secret',
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
    },
    {
      does: 'let edges read the key of the CA',
      rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['mooring-ca'], verbs: ['get'] }],
    },
    {
      does: 'let edges look at pods',
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
    },
  ])('it cannot $does', async ({ rules }) => {
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'edge-x', namespace: SYSTEM },
      rules,
    }
    await expect(kubectl(['create', '--filename', '-', ...as], role)).rejects.toThrow(
      /nothing but certificates, each by its name/,
    )
  })

  test('it cannot run pods as itself under the name of edges', async () => {
    const labels = { app: 'x' }
    const spec = { serviceAccountName: 'mooring-apiserver', containers: [{ name: 'x', image: 'x' }] }
    const deployment = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'edge-x', namespace: SYSTEM } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    }
    await expect(kubectl(['create', '--filename', '-', ...as], deployment)).rejects.toThrow(
      /only under the service accounts of edges/,
    )
  })

  test.each([
    { does: 'bind a ClusterRole', to: ['--clusterrole', 'mooring-edge', '--serviceaccount', `${SYSTEM}:edge-x`] },
    { does: 'bind somebody else', to: ['--role', 'edge-default', '--serviceaccount', `${SYSTEM}:somebody`] },
  ])('it cannot $does under the name of edges', async ({ to }) => {
    await expect(kubectl(['create', 'rolebinding', 'edge-x', ...to, ...as])).rejects.toThrow(/only the Roles of edges/)
  })
})
