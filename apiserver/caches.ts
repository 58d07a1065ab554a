import type { ApiToken } from '../crds/api-token.ts'
import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import type { Organization } from '../crds/organization.ts'
import type { Plan } from '../crds/plan.ts'
import type { Region } from '../crds/region.ts'
import type { SharedInstance } from '../crds/shared-instance.ts'
import type { Cache } from '../store/cache.ts'

/** The shared copies that the API works from; who makes them may share them with others. */
export interface ApiCaches {
  readonly organizations: Cache<typeof Organization>
  readonly namespaces: Cache<typeof Namespace>
  /** With `bindingIndexes` (store/role-access.ts), as the next. */
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  /** With `apiTokenIndexes` (auth/api-token.ts). */
  readonly apiTokens: Cache<typeof ApiToken>
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly instances: Cache<typeof SharedInstance>
}
