import { Namespace } from '../../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Store } from '../../store/port.ts'

const POD_SECURITY = 'pod-security.kubernetes.io'

/** Has the API server refuse pods in mooring-system that are not restricted: helm made the namespace, and puts no labels on it. */
export async function restrictSystemNamespace(store: Store): Promise<void> {
  const labels = Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`${POD_SECURITY}/${mode}`, 'restricted']))
  await store.mergePatch(Namespace, { name: SYSTEM_NAMESPACE }, { metadata: { labels } })
}
