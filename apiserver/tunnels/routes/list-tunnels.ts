import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { listOf, NamespaceParams } from '../../tenancy/tenancy-deps.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { TUNNELS_PATH } from '../tunnel-lookup.ts'
import { TunnelView } from '../tunnel-view.ts'

/** `GET …/tunnels`: newest first. */
export function listTunnels({ scopes, tunnels, show }: TunnelDeps): AnyRoute {
  return route({
    method: 'get',
    path: TUNNELS_PATH,
    on: ['shared'],
    id: 'listTunnels',
    summary: 'List the tunnels of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('tunnels', TunnelView) },
    async handle({ principal, params, query }) {
      const scope = await scopes.ofPath(principal, params)
      const { namespace } = scope
      await scopes.require(principal, { verb: 'list', resource: 'tunnels', namespace })
      const { items, nextCursor } = page(tunnels.list({ namespace }), query, resourceKey)
      return { status: 200, data: { tunnels: await show(items, { principal, scope }), nextCursor } }
    },
  })
}
