import { Secret } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { judgeSecret, MANAGED_BY } from '../shared-instance/kept-secret.ts'

export interface SecretSearch {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  /** Told of a namespace whose Secrets cannot be read now. */
  readonly onError: (namespace: string, error: unknown) => void
}

/**
 * Instances whose credential Secret is gone or not as it was made. Secrets are not watched, which would take the right to read all of a
 * cluster's: they are listed namespace by namespace, and only where there are instances.
 */
export async function findUnsoundSecrets(search: SecretSearch): Promise<readonly SharedInstance[]> {
  const byNamespace = Map.groupBy(search.instances.list().filter(isClaimed), ({ metadata }) => metadata.namespace ?? '')
  const unsound: SharedInstance[] = []
  for (const [namespace, claimed] of byNamespace) {
    try {
      unsound.push(...(await unsoundIn(search, namespace, claimed)))
    } catch (error) {
      search.onError(namespace, error)
    }
  }
  return unsound
}

/** One that is not claimed yet, or is going, has a reconciler at work on it. */
function isClaimed({ metadata, status }: SharedInstance): boolean {
  return status?.secretRef !== undefined && metadata.deletionTimestamp === undefined
}

async function unsoundIn({ store, ca }: SecretSearch, namespace: string, claimed: readonly SharedInstance[]) {
  const { items } = await store.list(Secret, { namespace, labels: { [labels.managedBy]: MANAGED_BY } })
  const secrets = new Map(items.map((secret) => [secret.metadata.name, secret]))
  return claimed.filter((instance) => {
    const secret = secrets.get(secretName(instance))
    const found = secret && judgeSecret(secret, { instance, ca: ca() })
    return typeof found !== 'object' || !found.tidy
  })
}
