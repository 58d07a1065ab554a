import { z } from 'zod'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { untilGone } from '../../resources/cache-waits.ts'
import { requestDeletion } from '../../resources/delete-expected.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { idParam } from '../../tenancy/tenancy-deps.ts'

const NEEDS = [{ verb: 'delete', resource: 'tunnelpasswords' }] as const
const Params = z.object({ ...TunnelParams.shape, id: idParam('Id of the password.') })

/** `DELETE …/tunnels/{t}/passwords/{id}`: also ends the sessions that logged in with the password. */
export function deleteTunnelPassword(deps: TunnelDeps): AnyRoute {
  const { store, tunnelPasswords, audit } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'delete',
    path: `${TUNNEL_PATH}/passwords/{id}`,
    on: ['shared'],
    id: 'deleteTunnelPassword',
    summary: 'Revoke a temporary password; sessions that logged in with it end.',
    conditional: true,
    params: Params,
    replies: { 200: z.object({}) },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { tunnel } = await find(principal, params, NEEDS)
      const password = tunnelPasswords.byUid(params.id.toLowerCase())
      const isOfTunnel =
        password?.metadata.namespace === tunnel.metadata.namespace && password?.spec.tunnelRef.name === tunnel.metadata.name
      if (!password || !isOfTunnel) throw new ApiError('not_found', 'this tunnel has no password with this id')
      if (await requestDeletion(store, TunnelPassword, password, ifMatch)) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: password })
      }
      await untilGone(tunnelPasswords, password)
      return { status: 200, data: {} }
    },
  })
}
