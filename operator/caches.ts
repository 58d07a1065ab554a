import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import type { DatabaseServer } from '../crds/database-server.ts'
import type { Organization } from '../crds/organization.ts'
import type { Region } from '../crds/region.ts'
import type { SharedInstance } from '../crds/shared-instance.ts'
import type { Cache } from '../store/cache.ts'

/** The shared copies that the operator works from; who makes them may share them with others. */
export interface OperatorCaches {
  readonly organizations: Cache<typeof Organization>
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  readonly regions: Cache<typeof Region>
  readonly servers: Cache<typeof DatabaseServer>
  /** With the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
}
