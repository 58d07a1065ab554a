import { ApiToken } from '../crds/api-token.ts'
import { Namespace, RoleBinding } from '../crds/core.ts'
import { DatabaseArchive } from '../crds/database-archive.ts'
import { DatabaseServer } from '../crds/database-server.ts'
import { DedicatedDatabase } from '../crds/dedicated-database.ts'
import { Organization } from '../crds/organization.ts'
import { Plan } from '../crds/plan.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { TenantNamespace } from '../crds/tenant-namespace.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../crds/tunnel-password.ts'
import { TunnelWebhook } from '../crds/tunnel-webhook.ts'
import type { Cache, CacheSet } from '../store/cache.ts'
import { databaseIndexes } from './dedicated-database/indexes.ts'
import { instanceIndexes } from './shared-instance/indexes.ts'
import { passwordIndexes, tunnelIndexes } from './tunnel/indexes.ts'
import { webhookIndexes } from './webhooks/indexes.ts'

/** Caches that the operator reads. The caller that makes them may share them with other components. */
export interface OperatorCaches {
  readonly organizations: Cache<typeof Organization>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly apiTokens: Cache<typeof ApiToken>
  readonly servers: Cache<typeof DatabaseServer>
  /** Shared instances, with the indexes of shared-instance/indexes.ts. */
  readonly instances: Cache<typeof SharedInstance>
  /** Dedicated databases, with the indexes of dedicated-database/indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly archives: Cache<typeof DatabaseArchive>
}

/** Creates the caches of an operator. */
export function createOperatorCaches({ cached }: CacheSet): OperatorCaches {
  return {
    organizations: cached(Organization),
    tenantNamespaces: cached(TenantNamespace),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding),
    regions: cached(Region),
    plans: cached(Plan),
    apiTokens: cached(ApiToken),
    servers: cached(DatabaseServer),
    instances: cached(SharedInstance, instanceIndexes),
    databases: cached(DedicatedDatabase, databaseIndexes),
    archives: cached(DatabaseArchive),
  }
}

/** Creates the caches that tunnels need in addition. */
export function createTunnelCaches({ cached }: CacheSet) {
  return {
    endpoints: cached(TunnelEndpoint),
    tunnels: cached(Tunnel, tunnelIndexes),
    tunnelPasswords: cached(TunnelPassword, passwordIndexes),
    tunnelWebhooks: cached(TunnelWebhook, webhookIndexes),
  }
}
