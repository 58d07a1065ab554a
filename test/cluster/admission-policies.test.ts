import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientsOf } from './setup/commands.ts'
import { openTunnelTenant, type TunnelTenant } from './setup/tenant.ts'

/** Requests that the operator's RBAC allows and the chart's admission policies deny. */

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

describe('the policies limit the operator, whose RBAC covers every namespace, to those of tenants:', () => {
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

  test('it can bind its role for Secrets in a tenant’s namespace', async () => {
    expect(await bind(TENANT)).toContain('created')
  })

  test.each(['kube-system', 'default', SYSTEM])('it cannot bind its role for Secrets in %s', async (namespace) => {
    // In the operator's own namespace two policies deny the request, and the error names either.
    await expect(bind(namespace)).rejects.toThrow(/the operator may touch only/)
  })

  // The API server itself prevents the deletion of kube-system, kube-public and default.
  test.each(['kube-node-lease', SYSTEM, SHARED])('it cannot delete the Namespace %s', async (namespace) => {
    // Of mooring-shared two policies deny it, and the error names either.
    const denied = /only the namespaces of tenants|deletes the data of all servers/
    await expect(kubectl(['delete', 'namespace', namespace, ...as])).rejects.toThrow(denied)
  })

  test('it cannot label another Namespace', async () => {
    const label = kubectl(['label', 'namespace', 'kube-system', 'mooring.dev/organization=x', ...as])
    await expect(label).rejects.toThrow(/only the namespaces of tenants/)
  })
})

test('an administrator cannot delete the Namespace of database servers without its annotation', async () => {
  const remove = kubectl(['delete', 'namespace', SHARED, '--dry-run=server'])
  await expect(remove).rejects.toThrow(/has the database server .*mooring.dev\/delete-data=true/)
})

describe('the policies limit the operator, whose RBAC covers all of its own namespace, to objects that it creates:', () => {
  const as = ['--as', OPERATOR, '--dry-run=server', '--namespace', SYSTEM]

  test('it can delete objects of edges', async () => {
    expect(await kubectl(['delete', 'deployment', 'edge-default', ...as])).toContain('deleted')
    expect(await kubectl(['delete', 'secret', tenant.certificate, ...as])).toContain('deleted')
  })

  test.each([
    ['delete', 'deployment', 'mooring-operator'],
    ['delete', 'deployment', 'mooring-apiserver'],
    ['delete', 'secret', 'mooring-ca'],
    ['create', 'serviceaccount', 'unrelated'],
    ['create', 'secret', 'generic', 'unrelated', '--from-literal=a=b'],
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
      does: 'let edges read pods',
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

  /** Deployment as the operator creates it for edges, with the given differences. */
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

  test('it can create the Deployment of edges', async () => {
    expect(await kubectl(['create', '--filename', '-', ...as], edgeDeployment({}))).toContain('created')
  })

  test.each<PodTraits & { readonly does: string; readonly refused: string }>([
    {
      does: 'as another service account',
      pod: { serviceAccountName: 'mooring-apiserver' },
      refused: 'service accounts of edges',
    },
    { does: 'privileged', container: { privileged: true, allowPrivilegeEscalation: true }, refused: 'without privileges' },
    { does: 'with privilege escalation', container: { allowPrivilegeEscalation: true }, refused: 'without privileges' },
    { does: 'with capabilities', container: { capabilities: { add: ['SYS_ADMIN'] } }, refused: 'without privileges' },
    { does: 'as root', container: { runAsUser: 0 }, refused: 'without privileges' },
    { does: 'on the network of the node', pod: { hostNetwork: true }, refused: 'of their node' },
    { does: 'in the process namespace of the node', pod: { hostPID: true }, refused: 'of their node' },
    { does: 'on a node of its choice', pod: { nodeName: 'x' }, refused: 'of their node' },
    {
      does: 'with files of the node',
      pod: { volumes: [{ name: 'root', hostPath: { path: '/' } }] },
      refused: 'of their node',
    },
    {
      does: 'with a privileged init container',
      pod: { initContainers: [{ name: 'y', image: 'x', securityContext: { privileged: true } }] },
      refused: 'without privileges',
    },
  ])('it cannot run pods of edges $does', async ({ refused, ...traits }) => {
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
    { does: 'bind another service account', to: ['--role', 'edge-default', '--serviceaccount', `${SYSTEM}:unrelated`] },
  ])('it cannot $does in a RoleBinding of edges', async ({ to }) => {
    await expect(kubectl(['create', 'rolebinding', 'edge-x', ...to, ...as])).rejects.toThrow(/only the Roles of edges/)
  })
})
