import { Secret } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { secretName } from '../shared-instance/credentials.ts'
import { type Credentials, checkSecret, MANAGED_BY } from '../shared-instance/kept-secret.ts'

export interface SecretSearch {
  readonly store: Store
  readonly instances: Cache<typeof SharedInstance>
  /** CA, in PEM, by which callers verify database servers. */
  readonly ca: () => string
  /** Receives the error of a namespace whose Secrets cannot be read. */
  readonly onError: (namespace: string, error: unknown) => void
}

/** Instance and the content of its Secret; undefined when the Secret is missing or changed. */
export interface KeptCredentials {
  readonly instance: SharedInstance
  readonly credentials: Credentials | undefined
}

/**
 * Reads the credential Secrets of all claimed instances. Secrets are not watched, as that needs permission to read all Secrets of the
 * cluster: they are listed by namespace, and only where there are instances.
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

/** Whether an instance is claimed. Others, and those being deleted, are handled by their reconciler. */
function isClaimed({ metadata, status }: SharedInstance): boolean {
  return status?.secretRef !== undefined && metadata.deletionTimestamp === undefined
}

async function readNamespace({ store, ca }: SecretSearch, namespace: string, claimed: readonly SharedInstance[]) {
  const { items } = await store.list(Secret, { namespace, labels: { [labels.managedBy]: MANAGED_BY } })
  const secrets = new Map(items.map((secret) => [secret.metadata.name, secret]))
  return claimed.map((instance) => {
    const secret = secrets.get(secretName(instance))
    const found = secret && checkSecret(secret, { instance, ca: ca() })
    return { instance, credentials: typeof found === 'object' && found.tidy ? found : undefined }
  })
}
