import { z } from 'zod'
import { Tunnel } from '../../../crds/tunnel.ts'
import { withinBudget } from '../../http/budget.ts'
import { whenGone } from '../../resources/cache-waits.ts'
import { requestDeletion } from '../../resources/delete-expected.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'

const NEEDS = [{ verb: 'delete', resource: 'tunnels' }] as const
const BUDGET_MS = 30_000

/** `DELETE …/tunnels/{t}`: 200 once the tunnel is gone and its hostname released, 202 while in progress. A repeated request joins the wait. */
export function deleteTunnel(deps: TunnelDeps): AnyRoute {
  const { store, tunnels, audit } = deps
  const find = createTunnelLookup(deps)

  return route({
    method: 'delete',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'deleteTunnel',
    summary: 'Delete a tunnel permanently; its sessions end and its hostname is released.',
    conditional: true,
    params: TunnelParams,
    replies: { 200: z.object({}), 202: TunnelData },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { tunnel, scope } = await find(principal, params, NEEDS)
      if (await requestDeletion(store, Tunnel, tunnel, ifMatch)) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: tunnel })
      }
      const gone = await withinBudget(BUDGET_MS, (signal) => whenGone(tunnels, tunnel, signal))
      if (gone) return { status: 200, data: {} }
      return { ...(await deps.answer(200, tunnel, { principal, scope })), status: 202 }
    },
  })
}
