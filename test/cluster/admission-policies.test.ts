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

  interface PodTraits {
    readonly pod?: object
    readonly container?: object
  }

  /** A Deployment as the operator makes them for edges, but for what a test wants different. */
  function edgeDeployment({ pod, container }: PodTraits) {
    const labels = { app: 'x' }
    const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
    const spec = {
      ...{ serviceAccountName: 'edge-x', securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } },
      containers: [{ name: 'x', image: 'x', securityContext: { ...securityContext, ...container } }],
      ...pod,
    }
    return {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'edge-x', namespace: SYSTEM } },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    }
  }

  test('it runs edges', async () => {
    expect(await kubectl(['create', '--filename', '-', ...as], edgeDeployment({}))).toContain('created')
  })

  test.each<PodTraits & { readonly does: string; readonly refused: string }>([
    {
      does: 'as another service account',
      pod: { serviceAccountName: 'mooring-apiserver' },
      refused: 'service accounts of edges',
    },
    { does: 'privileged', container: { privileged: true, allowPrivilegeEscalation: true }, refused: 'without privileges' },
    { does: 'with more privileges later', container: { allowPrivilegeEscalation: true }, refused: 'without privileges' },
    { does: 'with capabilities', container: { capabilities: { add: ['SYS_ADMIN'] } }, refused: 'without privileges' },
    { does: 'as root', container: { runAsUser: 0 }, refused: 'without privileges' },
    { does: 'on the network of the node', pod: { hostNetwork: true }, refused: 'of their node' },
    { does: 'among the processes of the node', pod: { hostPID: true }, refused: 'of their node' },
    { does: 'on a node of its choice', pod: { nodeName: 'x' }, refused: 'of their node' },
    {
      does: 'with files of the node',
      pod: { volumes: [{ name: 'root', hostPath: { path: '/' } }] },
      refused: 'of their node',
    },
    {
      does: 'with a privileged container beside',
      pod: { initContainers: [{ name: 'y', image: 'x', securityContext: { privileged: true } }] },
      refused: 'without privileges',
    },
  ])('it cannot run pods under the name of edges $does', async ({ refused, ...traits }) => {
    await expect(kubectl(['create', '--filename', '-', ...as], edgeDeployment(traits))).rejects.toThrow(refused)
  })

  test.each([
    'pod-security.kubernetes.io/enforce=privileged',
    'pod-security.kubernetes.io/enforce=baseline',
    'pod-security.kubernetes.io/enforce-',
  ])('it cannot label its namespace %s', async (label) => {
    const labelled = kubectl(['label', 'namespace', SYSTEM, label, '--overwrite', '--as', OPERATOR, '--dry-run=server'])
    await expect(labelled).rejects.toThrow(/may not weaken the pod security/)
  })

  test.each([
    { does: 'bind a ClusterRole', to: ['--clusterrole', 'mooring-edge', '--serviceaccount', `${SYSTEM}:edge-x`] },
    { does: 'bind somebody else', to: ['--role', 'edge-default', '--serviceaccount', `${SYSTEM}:somebody`] },
  ])('it cannot $does under the name of edges', async ({ to }) => {
    await expect(kubectl(['create', 'rolebinding', 'edge-x', ...to, ...as])).rejects.toThrow(/only the Roles of edges/)
  })
})
