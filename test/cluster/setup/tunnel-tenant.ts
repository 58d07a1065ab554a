import { clientsOf } from './kubectl.ts'
import { openTenantNamespace } from './tenant-namespace.ts'

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
  await kubectl(['wait', '--for=condition=Ready', 'tunnel/web', '--namespace', name, '--timeout=60s'])
  const hostname = await kubectl(['get', 'tunnel', 'web', '--namespace', name, '--output', 'jsonpath={.status.hostname}'])
  return {
    certificate: `tunnel-${hostname}-certificate`,
    [Symbol.asyncDispose]: () => namespace[Symbol.asyncDispose](),
  }
}
