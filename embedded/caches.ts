import { apiTokenIndexes } from '../apiserver/auth/api-token.ts'
import type { ApiCaches } from '../apiserver/caches.ts'
import { ApiToken } from '../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { DatabaseServer } from '../crds/database-server.ts'
import { Organization } from '../crds/organization.ts'
import { Plan } from '../crds/plan.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { TenantNamespace } from '../crds/tenant-namespace.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import { instanceIndexes } from '../operator/shared-instance/indexes.ts'
import type { CacheSet } from '../store/cache-set.ts'
import { bindingIndexes } from '../store/role-access.ts'

/** One cache a kind, for all components of this process. */
export function createCaches({ cached }: CacheSet): ApiCaches & OperatorCaches {
  return {
    organizations: cached(Organization),
    tenantNamespaces: cached(TenantNamespace),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding, bindingIndexes),
    clusterRoleBindings: cached(ClusterRoleBinding, bindingIndexes),
    apiTokens: cached(ApiToken, apiTokenIndexes),
    regions: cached(Region),
    plans: cached(Plan),
    servers: cached(DatabaseServer),
    instances: cached(SharedInstance, instanceIndexes),
  }
}
