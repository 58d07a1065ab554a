import { RoleBinding } from '../../crds/core.ts'
import type { Kind } from '../../crds/kind.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { hostKeysSecret, meshSecret, sharedCertificate, unknownHostsSecret } from '../../shared/edge-objects.ts'
import { pause, systemClock } from '../../store/clock.ts'
import { Deployment, PodDisruptionBudget, Role, ServiceAccount } from '../endpoint/kubernetes/kinds.ts'
import { OWNERSHIP } from '../endpoint/kubernetes/names.ts'
import { NetworkPolicy, Pod, Service } from '../kubernetes/kinds.ts'
import type { UninstallDeps } from './inventory.ts'
import { listed } from './inventory.ts'

const RETRY_MS = 500
const KINDS: readonly Kind[] = [
  ...[Deployment, Pod, Service, PodDisruptionBudget, NetworkPolicy],
  ...[RoleBinding, Role, ServiceAccount],
]

/** Names of the Secrets of endpoints' edges. Kubernetes deletes them with their owner, but a Secret made by hand has none. */
export const edgeSecrets = (endpoints: readonly TunnelEndpoint[]): readonly string[] =>
  endpoints.flatMap(({ metadata: { name } }) =>
    [hostKeysSecret, meshSecret, sharedCertificate, unknownHostsSecret].map((nameOf) => nameOf(name)),
  )

/**
 * Waits until Kubernetes' garbage collection has removed all objects of edges. Their TunnelEndpoints must be gone. The collection needs the
 * CustomResourceDefinition of the owners to exist.
 */
export async function edgesGone({ store, log, clock = systemClock }: UninstallDeps): Promise<void> {
  const scope = { namespace: SYSTEM_NAMESPACE, labels: OWNERSHIP }
  const never = new AbortController().signal
  for (;;) {
    const found = await Promise.all(KINDS.map(async (kind) => (await listed(store, kind, scope)).length))
    const left = found.reduce((sum, count) => sum + count, 0)
    if (left === 0) return
    log.info({ left }, 'waiting for edges to be gone')
    await pause(clock, RETRY_MS, never)
  }
}
