import { apiTokenIndexes } from '../apiserver/auth/api-token.ts'
import { ApiToken } from '../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { DatabaseServer } from '../crds/database-server.ts'
import type { Kind } from '../crds/kind.ts'
import { Organization } from '../crds/organization.ts'
import { Plan } from '../crds/plan.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { instanceIndexes } from '../operator/shared-instance/indexes.ts'
import { type Cache, type CacheDeps, createCache } from '../store/cache.ts'
import type { Store } from '../store/port.ts'
import { bindingIndexes } from '../store/role-access.ts'

/** One cache a kind, for all components of this process. */
export function createCaches(store: Store, onError: (error: unknown) => void) {
  const runs: ((signal: AbortSignal) => Promise<void>)[] = []
  function cached<K extends Kind>(kind: K, indexes?: CacheDeps<K>['indexes']): Cache<K> {
    const cache = createCache({ store, kind, onError, ...(indexes && { indexes }) })
    runs.push((signal) => cache.run(signal))
    return cache
  }
  const caches = {
    organizations: cached(Organization),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding, bindingIndexes),
    clusterRoleBindings: cached(ClusterRoleBinding, bindingIndexes),
    apiTokens: cached(ApiToken, apiTokenIndexes),
    regions: cached(Region),
    plans: cached(Plan),
    servers: cached(DatabaseServer),
    instances: cached(SharedInstance, instanceIndexes),
  }
  return {
    caches,
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all(runs.map((run) => run(signal)))
    },
    async synced(): Promise<void> {
      await Promise.all(Object.values(caches).map((cache) => cache.synced()))
    },
  }
}

export type Caches = ReturnType<typeof createCaches>['caches']
