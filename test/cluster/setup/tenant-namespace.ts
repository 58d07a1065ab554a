import type { Kubernetes } from './kubectl.ts'

type Kubectl = Kubernetes['kubectl']

/** Waits until a Namespace with our labels is one of a tenant. One that is not there yet is not waited for otherwise. */
export async function adopted(kubectl: Kubectl, name: string): Promise<void> {
  for (const what of ['create', 'condition=Ready'])
    await kubectl(['wait', `--for=${what}`, `tenantnamespace/${name}`, '--timeout=60s'])
}

/** Makes a tenant's Namespace by kubectl, which goes with its organization. @param name `{organization}--{namespace}` */
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
