import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { listOf } from '../../tenancy/tenancy-deps.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { createPasswordLookup, PasswordView, passwordView } from '../tunnel-passwords.ts'

const NEEDS = [{ verb: 'list', resource: 'tunnelpasswords' }] as const

/** `GET …/tunnels/{t}/passwords`: without the passwords, which are not stored. */
export function listTunnelPasswords(deps: TunnelDeps): AnyRoute {
  const { livePasswordsOf } = createPasswordLookup(deps)
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/passwords`,
    on: ['shared'],
    id: 'listTunnelPasswords',
    summary: 'List the valid temporary passwords of a tunnel.',
    params: TunnelParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('passwords', PasswordView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params, NEEDS)
      const { items, nextCursor } = page(livePasswordsOf(tunnel), query, resourceKey)
      return { status: 200, data: { passwords: items.map(passwordView), nextCursor } }
    },
  })
}
