import { type AnyRoute, route } from '../../http/route.ts'
import { TunnelData, type TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'

/** `GET …/tunnels/{t}` */
export function getTunnel(deps: TunnelDeps): AnyRoute {
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: TUNNEL_PATH,
    on: ['shared'],
    id: 'getTunnel',
    summary: 'Get one tunnel.',
    params: TunnelParams,
    replies: { 200: TunnelData },
    async handle({ principal, params }) {
      const { tunnel, scope } = await find(principal, params)
      return deps.answer(200, tunnel, { principal, scope })
    },
  })
}
