import { Secret } from '../../../crds/core.ts'
import { hostKeysSecret, meshSecret, unknownHostsSecret } from '../../../shared/edge-objects.ts'
import type { Store } from '../../../store/port.ts'
import { keyIn } from './names.ts'

/** Detects changes of an endpoint's Secrets, which are not watched. */
export interface SecretChanges {
  /** Whether a Secret changed or was deleted since the last call. True at the first call. */
  differ(endpoint: string): Promise<boolean>
  forget(endpoint: string): void
}

const NAMES = [hostKeysSecret, meshSecret, unknownHostsSecret]

export function createSecretChanges(store: Pick<Store, 'get'>): SecretChanges {
  const seen = new Map<string, string>()

  async function versionOf(name: string): Promise<string> {
    const found = await store.get(Secret, keyIn(name))
    return found ? `${found.metadata.uid} ${found.metadata.resourceVersion}` : 'none'
  }

  return {
    async differ(endpoint) {
      const versions = (await Promise.all(NAMES.map((nameOf) => versionOf(nameOf(endpoint))))).join()
      const before = seen.get(endpoint)
      seen.set(endpoint, versions)
      return versions !== before
    },
    forget: (endpoint) => void seen.delete(endpoint),
  }
}
