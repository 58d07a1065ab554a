import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import { createKubernetesStore } from '../../store/kubernetes.ts'
import { loadClusterConfig } from '../../store/kubernetes/credentials.ts'
import { openTunnelTenant, type TunnelTenant } from './setup/tenant.ts'
import { LATER } from '../support/patience.ts'

/** Permissions of each service account by the RBAC of the chart, as the API server's own authorizer decides. */

const OPERATOR = 'mooring-operator'
const APISERVER = 'mooring-apiserver'
const EDGE = 'edge-default'
/** Service account of pods that name none. Only this one is checked with the group of all authenticated users. */
const DEFAULT_ACCOUNT = 'default'
const TENANT = `permissions-${Date.now().toString(36)}--prod`
const ELSEWHERE = 'kube-system'
const SYSTEM = 'mooring-system'
const SHARED = 'mooring-shared'

/** Store for some hundreds of access reviews, for which kubectl would take minutes. */
const asked = createKubernetesStore({ config: await loadClusterConfig(process.env) })
const userOf = (account: string): string => `system:serviceaccount:${SYSTEM}:${account}`

/** Returns the access review of a question `verb resource[.group][/subresource][:name] [@ namespace]`; without a namespace, for all namespaces. */
function reviewOf(account: string, question: string): object {
  const found = /^(\S+) ([a-z]+)(?:\.([a-z0-9.-]+))?(?:\/([a-z]+))?(?::(\S+))?(?: @ (\S+))?$/.exec(question)
  if (!found) throw new Error(`no question: ${question}`)
  const [, verb, resource, group = '', subresource, name, namespace] = found
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: userOf(account),
      groups: [
        'system:serviceaccounts',
        `system:serviceaccounts:${SYSTEM}`,
        ...(account === DEFAULT_ACCOUNT ? ['system:authenticated'] : []),
      ],
      resourceAttributes: { verb, group, resource, subresource, name, namespace },
    },
  }
}

const Review = z.object({ status: z.object({ allowed: z.boolean() }) })

async function may(account: string, question: string): Promise<boolean> {
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  const answer = await asked.client.request({ method: 'POST', path, body: reviewOf(account, question), idempotent: true })
  return Review.parse(answer.body).status.allowed
}

const SECRET_WAYS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']
const of = (verbs: readonly string[], what: string): string[] => verbs.map((verb) => `${verb} ${what}`)
const plurals = CUSTOM_KINDS.map(({ plural }) => plural)
/** Kinds that the chart's value `catalogViewers` makes readable. */
const CATALOG = ['plans', 'regions', 'tunnelendpoints']
const namespacedOnly = (plural: string): string =>
  CUSTOM_KINDS.find((kind) => kind.plural === plural)?.namespaced ? ` @ ${TENANT}` : ''

/** Permissions that would give access to everything else. No account needs them. */
const NEVER = [
  ...of(['impersonate'], 'users'),
  ...of(['impersonate'], 'groups'),
  ...of(['impersonate'], 'serviceaccounts'),
  ...of(['create'], `serviceaccounts/token @ ${SYSTEM}`),
  ...of(['create'], `pods/exec @ ${SHARED}`),
  ...of(['create'], `pods/exec @ ${SYSTEM}`),
  ...of(['create'], `pods @ ${SYSTEM}`),
  ...of(['create'], `pods @ ${TENANT}`),
  ...of(['escalate', 'bind', 'create', 'update', 'patch', 'delete'], 'clusterroles.rbac.authorization.k8s.io'),
  ...of(['bind'], 'clusterroles.rbac.authorization.k8s.io:cluster-admin'),
  ...of(['create', 'update', 'patch', 'delete'], 'clusterrolebindings.rbac.authorization.k8s.io'),
  ...of(['create', 'update', 'patch', 'delete', 'escalate', 'bind'], `roles.rbac.authorization.k8s.io @ ${TENANT}`),
  ...of(['create', 'update', 'patch'], 'validatingwebhookconfigurations.admissionregistration.k8s.io'),
  ...of(['update', 'delete'], 'validatingadmissionpolicies.admissionregistration.k8s.io'),
  ...of(['create'], 'tokenreviews.authentication.k8s.io'),
  ...of(['approve'], 'signers.certificates.k8s.io'),
  ...of(['get', 'list'], 'nodes/proxy'),
  ...of(['patch', 'delete'], 'nodes'),
  ...of(['create', 'delete'], 'persistentvolumes'),
  ...of(SECRET_WAYS, 'secrets'),
  ...of(SECRET_WAYS, `secrets @ ${ELSEWHERE}`),
]

const TABLE = [
  {
    account: OPERATOR,
    may: [
      ...plurals.flatMap((plural) => of(['get', 'list', 'watch'], `${plural}.mooring.dev`)),
      ...plurals.map((plural) => `patch ${plural}.mooring.dev/status`),
      ...of(['patch', 'delete'], `sharedinstances.mooring.dev @ ${TENANT}`),
      ...of(['patch', 'delete'], `dedicateddatabases.mooring.dev @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], 'tenantnamespaces.mooring.dev'),
      ...of(['create', 'delete'], `databaseservers.mooring.dev @ ${SHARED}`),
      ...of(['create', 'delete'], `databasearchives.mooring.dev @ ${SHARED}`),
      // Finalizers, when the Role in mooring-shared is deleted with its Namespace.
      ...of(['patch'], 'databaseservers.mooring.dev'),
      ...of(['patch'], 'databasearchives.mooring.dev'),
      ...of(['get', 'list', 'create', 'patch', 'delete'], `secrets @ ${TENANT}`),
      ...of(SECRET_WAYS, `secrets @ ${SHARED}`),
      ...of(['get', 'create', 'patch', 'delete'], `secrets @ ${SYSTEM}`),
      ...of(['get', 'list', 'watch', 'create', 'patch', 'delete'], `deployments.apps @ ${SYSTEM}`),
      ...of(['create', 'patch', 'delete'], `roles.rbac.authorization.k8s.io @ ${SYSTEM}`),
      ...of(['get', 'list', 'watch'], `pods @ ${SYSTEM}`),
      ...of(['patch', 'delete'], `tunnels.mooring.dev @ ${TENANT}`),
      ...of(['patch', 'delete'], `tunnelpasswords.mooring.dev @ ${TENANT}`),
      ...of(['patch'], `tunnelwebhooks.mooring.dev @ ${TENANT}`),
      ...of(['get', 'patch'], 'clusterrolebindings.rbac.authorization.k8s.io:mooring-edge'),
      ...of(['get', 'patch'], `leases.coordination.k8s.io:mooring-operator @ ${SYSTEM}`),
      ...of(['create', 'patch', 'delete'], `statefulsets.apps @ ${SHARED}`),
      ...of(['create', 'patch', 'delete'], `networkpolicies.networking.k8s.io @ ${SHARED}`),
      ...of(['get', 'patch', 'delete'], `podmonitors.monitoring.coreos.com:mooring-databases @ ${SHARED}`),
      ...of(['create'], 'events.events.k8s.io'),
      ...of(['create'], `rolebindings.rbac.authorization.k8s.io @ ${TENANT}`),
      ...of(['bind'], 'clusterroles.rbac.authorization.k8s.io:mooring-tenant-operator'),
      ...of(['get', 'update'], 'customresourcedefinitions.apiextensions.k8s.io:sharedinstances.mooring.dev'),
    ],
    mayNot: [
      ...NEVER,
      ...of(['create', 'update', 'patch', 'delete'], 'regions.mooring.dev'),
      ...of(['create', 'update'], `sharedinstances.mooring.dev @ ${TENANT}`),
      ...of(['create', 'update'], `dedicateddatabases.mooring.dev @ ${TENANT}`),
      ...of(['create', 'update', 'patch', 'delete'], `apitokens.mooring.dev @ ${TENANT}`),
      ...of(['create'], `databaseservers.mooring.dev @ ${TENANT}`),
      ...of(['create', 'delete'], `databasearchives.mooring.dev @ ${TENANT}`),
      ...of(['patch', 'delete'], `podmonitors.monitoring.coreos.com:others @ ${SHARED}`),
      ...of(['create'], `podmonitors.monitoring.coreos.com @ ${TENANT}`),
      ...of(['create'], 'subjectaccessreviews.authorization.k8s.io'),
      ...of(['list', 'watch', 'update'], `secrets @ ${SYSTEM}`),
      ...of(['escalate', 'bind'], `roles.rbac.authorization.k8s.io @ ${SYSTEM}`),
      ...of(['patch'], 'clusterrolebindings.rbac.authorization.k8s.io:cluster-admin'),
      ...of(['create', 'update', 'patch', 'delete'], 'tunnelendpoints.mooring.dev'),
      ...of(['create', 'update'], `tunnels.mooring.dev @ ${TENANT}`),
      ...of(['create', 'update', 'delete'], `tunnelwebhooks.mooring.dev @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], `deployments.apps @ ${SHARED}`),
      ...of(['create', 'patch', 'delete'], `deployments.apps @ ${TENANT}`),
      ...of(['delete'], `pods @ ${SYSTEM}`),
      ...of(['create', 'patch', 'delete'], `statefulsets.apps @ ${SYSTEM}`),
      ...of(['create', 'patch', 'delete'], `statefulsets.apps @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], `networkpolicies.networking.k8s.io @ ${TENANT}`),
      ...of(['update', 'delete'], 'customresourcedefinitions.apiextensions.k8s.io:others.example.com'),
      ...of(['delete'], 'customresourcedefinitions.apiextensions.k8s.io:sharedinstances.mooring.dev'),
      ...of(['bind'], 'clusterroles.rbac.authorization.k8s.io:mooring-platform-admin'),
      ...of(['bind'], 'clusterroles.rbac.authorization.k8s.io:admin'),
    ],
  },
  {
    account: APISERVER,
    may: [
      ...plurals.flatMap((plural) => of(['get', 'list', 'watch'], `${plural}.mooring.dev`)),
      ...of(['create', 'patch', 'delete'], `sharedinstances.mooring.dev @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], `dedicateddatabases.mooring.dev @ ${TENANT}`),
      ...of(['delete'], `databasearchives.mooring.dev @ ${SHARED}`),
      ...of(['create', 'delete'], `apitokens.mooring.dev @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], `tunnels.mooring.dev @ ${TENANT}`),
      ...of(['create', 'delete'], `tunnelpasswords.mooring.dev @ ${TENANT}`),
      ...of(['create', 'patch', 'delete'], `tunnelwebhooks.mooring.dev @ ${TENANT}`),
      ...of(['create', 'delete'], 'tenantnamespaces.mooring.dev'),
      ...of(['create', 'delete'], 'organizations.mooring.dev'),
      ...of(['create'], 'subjectaccessreviews.authorization.k8s.io'),
      ...of(['get', 'list', 'watch'], 'namespaces'),
      ...of(['get', 'list', 'watch'], 'rolebindings.rbac.authorization.k8s.io'),
      ...of(['get', 'list', 'watch'], 'clusterrolebindings.rbac.authorization.k8s.io'),
      ...of(['get', 'create', 'patch'], `secrets @ ${TENANT}`),
      ...of(['create', 'delete'], `rolebindings.rbac.authorization.k8s.io @ ${TENANT}`),
      ...of(['bind'], `clusterroles.rbac.authorization.k8s.io:mooring-editor @ ${TENANT}`),
      ...of(['get', 'patch'], `configmaps:mooring-dashboard-signed-out @ ${SYSTEM}`),
    ],
    mayNot: [
      ...NEVER,
      ...of(['get', 'list', 'watch', 'create', 'patch', 'delete'], `configmaps @ ${SYSTEM}`),
      ...plurals.flatMap((plural) => of(['update', 'patch'], `${plural}.mooring.dev/status${namespacedOnly(plural)}`)),
      ...of(['create', 'update', 'patch', 'delete'], 'regions.mooring.dev'),
      ...of(['create', 'update', 'patch', 'delete'], 'plans.mooring.dev'),
      ...of(['create', 'update', 'patch', 'delete'], `databaseservers.mooring.dev @ ${SHARED}`),
      ...of(['create', 'update', 'patch'], `databasearchives.mooring.dev @ ${SHARED}`),
      ...of(['delete'], `databasearchives.mooring.dev @ ${TENANT}`),
      ...of(['create', 'update', 'patch', 'delete'], 'namespaces'),
      ...of(['list', 'watch', 'update', 'delete'], `secrets @ ${TENANT}`),
      ...of(SECRET_WAYS, `secrets @ ${SYSTEM}`),
      ...of(SECRET_WAYS, `secrets:mooring-apiserver @ ${SYSTEM}`),
      ...of(SECRET_WAYS, `secrets:journal-reader @ ${SYSTEM}`),
      ...of(['update', 'patch', 'delete'], `deployments.apps:mooring-operator @ ${SYSTEM}`),
      ...of(['create', 'update', 'patch', 'delete'], 'tunnelendpoints.mooring.dev'),
      ...of(SECRET_WAYS, `secrets @ ${SHARED}`),
      ...of(['create', 'update', 'patch', 'delete'], 'rolebindings.rbac.authorization.k8s.io'),
      ...of(['create'], `rolebindings.rbac.authorization.k8s.io @ ${ELSEWHERE}`),
      ...of(['bind'], `clusterroles.rbac.authorization.k8s.io:mooring-tenant-operator @ ${TENANT}`),
      ...of(['bind'], `clusterroles.rbac.authorization.k8s.io:mooring-platform-admin @ ${TENANT}`),
      ...of(['get', 'list', 'watch'], `pods @ ${SHARED}`),
      ...of(['get', 'list', 'watch'], `statefulsets.apps @ ${SHARED}`),
      ...of(['get', 'update', 'patch'], `leases.coordination.k8s.io @ ${SYSTEM}`),
      ...of(['get', 'create', 'update'], 'customresourcedefinitions.apiextensions.k8s.io'),
    ],
  },
  {
    // Every authenticated user sees the catalog.
    account: DEFAULT_ACCOUNT,
    may: CATALOG.flatMap((plural) => of(['get', 'list'], `${plural}.mooring.dev`)),
    mayNot: [
      ...NEVER,
      ...plurals.filter((plural) => !CATALOG.includes(plural)).flatMap((plural) => of(['get', 'list'], `${plural}.mooring.dev`)),
      ...CATALOG.flatMap((plural) => of(['create', 'update', 'patch', 'delete'], `${plural}.mooring.dev`)),
    ],
  },
]

/** Name of the Secret with the certificate of a tunnel of the endpoint `default`. */
let certificate: string

let tenant: TunnelTenant
beforeAll(async () => {
  tenant = await openTunnelTenant(TENANT)
  ;({ certificate } = tenant)
})
afterAll(async () => {
  await asked.close()
  await tenant[Symbol.asyncDispose]()
})

/** Returns the questions whose answer is not `expected`. */
async function wrong(account: string, questions: readonly string[], expected: boolean): Promise<readonly string[]> {
  const answers = await Promise.all(questions.map((question) => may(account, question)))
  return questions.filter((_, index) => answers[index] !== expected)
}

describe.each(TABLE)('$account', ({ account, may: all, mayNot: none }) => {
  test('may do what it needs', async () => {
    expect(await wrong(account, all, true)).toEqual([])
  })
  test('may do nothing else', async () => {
    expect(await wrong(account, none, false)).toEqual([])
  })
})

describe('edge-default, with the Role that the operator creates,', () => {
  test('may read its tunnels and, by name, their certificates', async () => {
    const all = [
      ...of(['get', 'list', 'watch'], 'tunnels.mooring.dev'),
      ...of(['get', 'list', 'watch'], 'tunnelpasswords.mooring.dev'),
      ...of(['get', 'list', 'watch'], 'tunnelendpoints.mooring.dev'),
      ...of(['get', 'list', 'watch'], `endpointslices.discovery.k8s.io @ ${SYSTEM}`),
      `get secrets:${certificate} @ ${SYSTEM}`,
      `get secrets:endpoint-default-strangers @ ${SYSTEM}`,
    ]
    await expect.poll(() => wrong(EDGE, all, true), LATER).toEqual([])
  })

  test('may do nothing else, so that a compromised edge has only the keys of its own tunnels', async () => {
    const others = [
      'mooring-ca',
      'mooring-issuer',
      'mooring-apiserver',
      'journal-owner',
      'journal-reader',
      'endpoint-default-host-keys',
    ]
    const none = [
      ...NEVER,
      ...of(['list', 'watch', 'create', 'update', 'patch', 'delete'], `secrets @ ${SYSTEM}`),
      ...of(['update', 'patch', 'delete'], `secrets:${certificate} @ ${SYSTEM}`),
      ...of(['update', 'patch', 'delete'], `secrets:endpoint-default-strangers @ ${SYSTEM}`),
      ...[...others, 'endpoint-other-certificate', 'endpoint-other-strangers', 'tunnel-0000000000000000-certificate'].map(
        (name) => `get secrets:${name} @ ${SYSTEM}`,
      ),
      ...of(SECRET_WAYS, `secrets @ ${SHARED}`),
      ...of(SECRET_WAYS, `secrets @ ${TENANT}`),
      ...plurals.flatMap((plural) =>
        of(['create', 'update', 'patch', 'delete'], `${plural}.mooring.dev${namespacedOnly(plural)}`),
      ),
      ...plurals.map((plural) => `patch ${plural}.mooring.dev/status${namespacedOnly(plural)}`),
      ...of(['get', 'list', 'watch'], `sharedinstances.mooring.dev @ ${TENANT}`),
      ...of(['get', 'list', 'watch'], `apitokens.mooring.dev @ ${TENANT}`),
      ...of(['get', 'list', 'watch'], `pods @ ${SYSTEM}`),
      ...of(['get', 'list', 'watch'], `endpointslices.discovery.k8s.io @ ${SHARED}`),
      ...of(['create'], 'subjectaccessreviews.authorization.k8s.io'),
    ]
    expect(await wrong(EDGE, none, false)).toEqual([])
  })
})
