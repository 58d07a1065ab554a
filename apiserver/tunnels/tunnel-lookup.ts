import { z } from 'zod'
import type { Tunnel } from '../../crds/tunnel.ts'
import type { Verb } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'
import type { Principal, Scope } from '../http/route.ts'
import type { PathScope, Scopes } from '../auth/scope.ts'
import { NAMESPACE_PATH, NamespaceParams } from '../tenancy/tenancy-deps.ts'

export const TUNNELS_PATH = `${NAMESPACE_PATH}/tunnels`
export const TUNNEL_PATH = `${TUNNELS_PATH}/{tunnel}`

/** Path parameters. Text that is neither an id nor a hostname is 404, not 400. */
export const TunnelParams = z.object({
  ...NamespaceParams.shape,
  tunnel: z
    .string()
    .describe('Id or hostname of the tunnel.')
    .meta({ pattern: '^([0-9A-Fa-f]{16}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$' }),
})

/** Right that a request needs in addition to reading the tunnel. */
export interface TunnelNeed {
  readonly verb: Verb
  readonly resource: 'tunnels' | 'tunnelpasswords' | 'tunnelwebhooks'
}

export interface FoundTunnel {
  readonly tunnel: Tunnel
  readonly scope: Scope
}

/**
 * Finds the tunnel of a path by its id or its hostname.
 * @throws ApiError `not_found` when the namespace has no such tunnel or the caller may not read the namespace; `forbidden` when a right is missing
 */
export type FindTunnel = (
  principal: Principal,
  params: PathScope & { readonly tunnel: string },
  needs?: readonly TunnelNeed[],
) => Promise<FoundTunnel>

/** Indexes that the tunnel cache needs. */
export const tunnelLookupIndexes = {
  hostname: ({ status }: Tunnel): readonly string[] => (status?.hostname === undefined ? [] : [status.hostname]),
}

export interface TunnelLookupDeps {
  readonly scopes: Scopes
  /** Cache with {@link tunnelLookupIndexes}. */
  readonly tunnels: Cache<typeof Tunnel>
}

export function createTunnelLookup({ scopes, tunnels }: TunnelLookupDeps): FindTunnel {
  return async function findTunnel(principal, params, needs = []) {
    const scope = await scopes.ofPath(principal, params)
    await scopes.require(principal, { verb: 'get', resource: 'tunnels', namespace: scope.namespace })
    const name = params.tunnel.toLowerCase()
    const tunnel = tunnels.byUid(name) ?? tunnels.byIndex('hostname', name)[0]
    if (tunnel?.metadata.namespace !== scope.namespace)
      throw new ApiError('not_found', 'there is no tunnel with this id or hostname in this namespace')
    for (const need of needs) await scopes.require(principal, { ...need, namespace: scope.namespace })
    return { tunnel, scope }
  }
}

/** Checks that the tunnel is not being deleted. @throws ApiError `conflict` */
export function requireTunnelNotDeleting({ metadata }: Tunnel): void {
  if (metadata.deletionTimestamp !== undefined)
    throw new ApiError('conflict', 'this tunnel is being deleted, and cannot be changed')
}
