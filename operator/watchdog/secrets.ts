import { Secret } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { type Credentials, judgeSecret, MANAGED_BY } from '../shared-instance/kept-secret.ts'

export interface SecretSearch {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  /** PEM of the CA that callers check database servers by. */
  readonly ca: () => string
  /** Called with a namespace whose Secrets cannot be read now. */
  readonly onError: (namespace: string, error: unknown) => void
}

/** An instance with what its Secret says; undefined when the Secret is gone or not as it was made. */
export interface KeptCredentials {
  readonly instance: SharedInstance
  readonly credentials: Credentials | undefined
}

/**
 * The credential Secrets of all claimed instances. Secrets are not watched, which would take the right to read all of a
 * cluster's: they are listed namespace by namespace, and only where there are instances.
 */
export async function readSecrets(search: SecretSearch): Promise<readonly KeptCredentials[]> {
  const byNamespace = Map.groupBy(search.instances.list().filter(isClaimed), ({ metadata }) => metadata.namespace ?? '')
  const found: KeptCredentials[] = []
  for (const [namespace, claimed] of byNamespace) {
    try {
      found.push(...(await readNamespace(search, namespace, claimed)))
    } catch (error) {
      search.onError(namespace, error)
    }
  }
  return found
}

/** One that is not claimed yet, or is going, has a reconciler at work on it. */
function isClaimed({ metadata, status }: SharedInstance): boolean {
  return status?.secretRef !== undefined && metadata.deletionTimestamp === undefined
}

async function readNamespace({ store, ca }: SecretSearch, namespace: string, claimed: readonly SharedInstance[]) {
  const { items } = await store.list(Secret, { namespace, labels: { [labels.managedBy]: MANAGED_BY } })
  const secrets = new Map(items.map((secret) => [secret.metadata.name, secret]))
  return claimed.map((instance) => {
    const secret = secrets.get(secretName(instance))
    const found = secret && judgeSecret(secret, { instance, ca: ca() })
    return { instance, credentials: typeof found === 'object' && found.tidy ? found : undefined }
  })
}
