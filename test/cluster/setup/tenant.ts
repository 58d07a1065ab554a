import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kubernetes, clientsOf } from './commands.ts'
import { clusterRoleOf, type Role } from '../../../crds/names.ts'
import { KUBECTL_WAIT } from '../../support/patience.ts'

type Kubectl = Kubernetes['kubectl']

/** Waits until Mooring has adopted a Namespace with our labels as that of a tenant. Waits first for the creation of the TenantNamespace. */
export async function adopted(kubectl: Kubectl, name: string): Promise<void> {
  for (const what of ['create', 'condition=Ready'])
    await kubectl(['wait', `--for=${what}`, `tenantnamespace/${name}`, KUBECTL_WAIT])
}

/** Creates a tenant's Namespace by kubectl. Disposal deletes it with its organization. @param name `{organization}--{namespace}` */
export async function openTenantNamespace(kubectl: Kubectl, name: string): Promise<AsyncDisposable> {
  const [organization = '', namespace = ''] = name.split('--')
  await using made = new AsyncDisposableStack()
  const labels = { 'mooring.dev/organization': organization, 'mooring.dev/namespace': namespace }
  await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  made.defer(async () => {
    await kubectl(['delete', 'tenantnamespace', name, '--ignore-not-found', '--wait'])
    await kubectl(['delete', 'organization', organization, '--ignore-not-found', '--wait=false'])
  })
  await adopted(kubectl, name)
  return made.move()
}

/** Namespace of a tenant with one tunnel. */
export interface TunnelTenant extends AsyncDisposable {
  /** Name of the Secret with the certificate of the tunnel. */
  readonly certificate: string
}

/** Creates the namespace in the cluster of `KUBECONFIG`. @param name `{organization}--{namespace}` */
export async function openTunnelTenant(name: string): Promise<TunnelTenant> {
  const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
  const namespace = await openTenantNamespace(kubectl, name)
  const tunnel = {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: { name: 'web', namespace: name },
    spec: { regionId: 1 },
  }
  await kubectl(['apply', '--filename', '-'], tunnel)
  await kubectl(['wait', '--for=condition=Ready', 'tunnel/web', '--namespace', name, KUBECTL_WAIT])
  const hostname = await kubectl(['get', 'tunnel', 'web', '--namespace', name, '--output', 'jsonpath={.status.hostname}'])
  return {
    certificate: `tunnel-${hostname}-certificate`,
    [Symbol.asyncDispose]: () => namespace[Symbol.asyncDispose](),
  }
}

export interface Membership {
  readonly namespace: string
  readonly role: Role
}

/** Member with one role in one tenant's namespace and no other permission. */
export interface Member extends AsyncDisposable {
  readonly kubectl: Kubernetes['kubectl']
}

/** Creates a service account in the namespace, binds the role to it by kubectl, and logs in as it. Both are deleted with the namespace. */
export async function memberOf({ kubectl }: Kubernetes, { namespace, role }: Membership): Promise<Member> {
  const account = `${role}-by-kubectl`
  const there = ['--namespace', namespace]
  await kubectl(['create', 'serviceaccount', account, ...there])
  const subject = `${namespace}:${account}`
  await kubectl(['create', 'rolebinding', account, '--clusterrole', clusterRoleOf(role), '--serviceaccount', subject, ...there])
  const token = await kubectl(['create', 'token', account, ...there])
  const config = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '--output', 'json'])) as object
  const directory = await mkdtemp(join(tmpdir(), 'mooring-member-'))
  const kubeconfig = join(directory, 'kubeconfig')
  // The administrator's certificate must not be in the config: it would take precedence over the token.
  const { contexts, 'current-context': name } = config as { contexts: [{ context: object }]; 'current-context': string }
  const context = { name, context: { ...contexts[0].context, user: account, namespace } }
  const users = [{ name: account, user: { token } }]
  await writeFile(kubeconfig, JSON.stringify({ ...config, contexts: [context], users }), { mode: 0o600 })
  return {
    kubectl: clientsOf(kubeconfig).kubectl,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  }
}
