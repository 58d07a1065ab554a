import { type ApiCaches, createApiCaches } from '../apiserver/api.ts'
import { DatabaseServer } from '../crds/database-server.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import { databaseIndexes } from '../operator/dedicated-database/indexes.ts'
import { instanceIndexes } from '../operator/shared-instance/indexes.ts'
import { Secret } from '../crds/core.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../crds/tunnel-password.ts'
import { TunnelWebhook } from '../crds/tunnel-webhook.ts'
import { routedPasswordIndexes } from '../edge/routes.ts'
import { passwordIndexes, tunnelIndexes } from '../operator/tunnel/indexes.ts'
import { webhookIndexes } from '../operator/webhooks/indexes.ts'
import type { CacheSet } from '../store/cache.ts'

/** Creates one cache for each kind, for all components of this process: those of the API, and one more for the operator. */
export function createCaches(set: CacheSet): ApiCaches & OperatorCaches {
  const indexes = { instances: instanceIndexes, databases: databaseIndexes }
  return { ...createApiCaches(set, indexes), servers: set.cached(DatabaseServer) }
}

/** Creates the caches for tunnels, for operator, API and edge. */
export function createTunnelCaches({ cached }: CacheSet) {
  return {
    endpoints: cached(TunnelEndpoint),
    tunnels: cached(Tunnel, tunnelIndexes),
    tunnelPasswords: cached(TunnelPassword, { ...passwordIndexes, ...routedPasswordIndexes }),
    tunnelWebhooks: cached(TunnelWebhook, webhookIndexes),
    secrets: cached(Secret),
  }
}
