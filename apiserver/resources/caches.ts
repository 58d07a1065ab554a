import { ApiToken } from '../../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../../crds/core.ts'
import { Organization } from '../../crds/organization.ts'
import { Plan } from '../../crds/plan.ts'
import { Region } from '../../crds/region.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import { Tunnel } from '../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import type { Cache, CacheDeps } from '../../store/cache.ts'
import type { CacheSet } from '../../store/cache-set.ts'
import { bindingIndexes } from '../../store/role-access.ts'
import { apiTokenIndexes } from '../auth/api-token.ts'
import { tunnelLookupIndexes } from '../tunnels/tunnel-lookup.ts'

/** Caches of the API; the process may share them with other components. */
export interface ApiCaches {
  readonly organizations: Cache<typeof Organization>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  /** Cache with `bindingIndexes` (store/role-access.ts). */
  readonly roleBindings: Cache<typeof RoleBinding>
  /** Cache with `bindingIndexes` (store/role-access.ts). */
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  /** Cache with `apiTokenIndexes` (auth/api-token.ts). */
  readonly apiTokens: Cache<typeof ApiToken>
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly instances: Cache<typeof SharedInstance>
}

/** Creates the caches of an API server. `instanceIndexes` are for components that share the caches; the API itself needs none. */
export function createApiCaches({ cached }: CacheSet, instanceIndexes?: CacheDeps<typeof SharedInstance>['indexes']): ApiCaches {
  return {
    organizations: cached(Organization),
    tenantNamespaces: cached(TenantNamespace),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding, bindingIndexes),
    clusterRoleBindings: cached(ClusterRoleBinding, bindingIndexes),
    apiTokens: cached(ApiToken, apiTokenIndexes),
    regions: cached(Region),
    plans: cached(Plan),
    instances: cached(SharedInstance, instanceIndexes),
  }
}

/** Creates the additional caches of the tunnel routes. */
export function createTunnelCaches({ cached }: CacheSet) {
  return {
    endpoints: cached(TunnelEndpoint),
    tunnels: cached(Tunnel, tunnelLookupIndexes),
    tunnelPasswords: cached(TunnelPassword),
  }
}
