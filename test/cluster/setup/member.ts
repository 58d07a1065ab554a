import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterRoleOf, type Role } from '../../../crds/names.ts'
import { clientsOf, type Kubernetes } from './kubectl.ts'

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
