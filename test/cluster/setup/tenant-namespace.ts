import type { Kubernetes } from './kubectl.ts'

type Kubectl = Kubernetes['kubectl']

/** Waits until Mooring has adopted a Namespace with our labels as that of a tenant. Waits first for the creation of the TenantNamespace. */
export async function adopted(kubectl: Kubectl, name: string): Promise<void> {
  for (const what of ['create', 'condition=Ready'])
    await kubectl(['wait', `--for=${what}`, `tenantnamespace/${name}`, '--timeout=60s'])
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
