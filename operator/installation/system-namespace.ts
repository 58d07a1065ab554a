import { Namespace } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Store } from '../../store/port.ts'

const POD_SECURITY = 'pod-security.kubernetes.io'

/** Makes the API server reject pods in mooring-system that are not restricted. Helm creates the namespace without labels. */
export async function restrictSystemNamespace(store: Store): Promise<void> {
  const labels = Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`${POD_SECURITY}/${mode}`, 'restricted']))
  await store.mergePatch(Namespace, { name: SYSTEM_NAMESPACE }, { metadata: { labels } })
}
