import { clientsOf } from './kubectl.ts'

/** The namespace of a tenant who has one tunnel. */
export interface TunnelTenant extends AsyncDisposable {
  /** Of the Secret with the certificate of the tunnel. */
  readonly certificate: string
}

/** @param name of the Namespace: `{organization}--{namespace}`. In the cluster of `KUBECONFIG` */
export async function openTunnelTenant(name: string): Promise<TunnelTenant> {
  const { kubectl } = clientsOf(process.env.KUBECONFIG ?? '')
  const [organization = '', namespace = ''] = name.split('--')
  const labels = { 'mooring.dev/organization': organization, 'mooring.dev/namespace': namespace }
  await kubectl(['apply', '--filename', '-'], { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  // One that is not there yet is not waited for otherwise.
  for (const what of ['create', 'condition=Ready'])
    await kubectl(['wait', `--for=${what}`, `tenantnamespace/${name}`, '--timeout=60s'])
  const tunnel = {
    apiVersion: 'mooring.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: { name: 'web', namespace: name },
    spec: { regionId: 1 },
  }
  await kubectl(['apply', '--filename', '-'], tunnel)
  await kubectl(['wait', '--for=condition=Ready', 'tunnel/web', '--namespace', name, '--timeout=60s'])
  const hostname = await kubectl(['get', 'tunnel', 'web', '--namespace', name, '--output', 'jsonpath={.status.hostname}'])
  return {
    certificate: `tunnel-${hostname}-certificate`,
    async [Symbol.asyncDispose]() {
      await kubectl(['delete', 'tenantnamespace', name, '--wait', '--ignore-not-found'])
      await kubectl(['delete', 'organization', organization, '--ignore-not-found'])
    },
  }
}
