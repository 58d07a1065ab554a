import { z } from 'zod'
import type { ApiToken } from '../../crds/api-token.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { SharedInstance } from '../../crds/shared-instance.ts'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { Cache } from '../../store/cache.ts'
import { type ApiLimits, DEFAULT_LIMITS } from '../http/rate-limit.ts'

const Usage = z.object({ used: z.int().min(0), limit: z.int().min(0) })

/** Numbers of objects in a namespace, and the limits of them. `used` may exceed `limit`: an object of kubectl counts, and a limit may be lowered. */
export const NamespaceQuota = z
  .object({ instances: Usage, databases: Usage, tunnels: Usage, apiTokens: Usage })
  .meta({ id: 'NamespaceQuota' })

export interface NamespaceQuotaDeps {
  readonly quotas?: Pick<ApiLimits, 'quotaInstances' | 'quotaDatabases' | 'quotaTunnels' | 'quotaApiTokens'>
  readonly instances?: Pick<Cache<typeof SharedInstance>, 'count'>
  readonly databases?: Pick<Cache<typeof DedicatedDatabase>, 'count'>
  /** Absent in an installation without edges. */
  readonly tunnels?: { readonly tunnels: Pick<Cache<typeof Tunnel>, 'count'> } | undefined
  readonly apiTokens: Pick<Cache<typeof ApiToken>, 'count'>
}

/** Creates the function that returns the quota of a namespace. It counts what the quotas of the POST routes count. */
export function createNamespaceQuota({ quotas = DEFAULT_LIMITS, instances, databases, tunnels, apiTokens }: NamespaceQuotaDeps) {
  return function quotaOf(namespace: string): z.output<typeof NamespaceQuota> {
    return {
      instances: { used: instances?.count({ namespace }) ?? 0, limit: quotas.quotaInstances },
      databases: { used: databases?.count({ namespace }) ?? 0, limit: quotas.quotaDatabases },
      tunnels: { used: tunnels?.tunnels.count({ namespace }) ?? 0, limit: quotas.quotaTunnels },
      apiTokens: { used: apiTokens.count({ namespace }), limit: quotas.quotaApiTokens },
    }
  }
}
