import { type ApiCaches, createApiCaches } from '../apiserver/caches.ts'
import { DatabaseServer } from '../crds/database-server.ts'
import type { OperatorCaches } from '../operator/caches.ts'
import { instanceIndexes } from '../operator/shared-instance/indexes.ts'
import type { CacheSet } from '../store/cache-set.ts'

/** One cache a kind, for all components of this process: the API's, and the one more that the operator has. */
export function createCaches(set: CacheSet): ApiCaches & OperatorCaches {
  return { ...createApiCaches(set, instanceIndexes), servers: set.cached(DatabaseServer) }
}
