import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../paging.ts'
import { type AnyRoute, route } from '../route.ts'
import { listOf } from '../tenancy-deps.ts'
import type { TunnelDeps } from '../tunnel-deps.ts'
import { createTunnelLookup, TUNNEL_PATH, TunnelParams } from '../tunnel-lookup.ts'
import { PasswordView, passwordView } from '../tunnel-passwords.ts'

const NEEDS = [{ verb: 'list', resource: 'tunnelpasswords' }] as const

/** `GET …/tunnels/{t}/passwords`: without the passwords, which are kept nowhere. */
export function listTunnelPasswords(deps: TunnelDeps): AnyRoute {
  const { tunnelPasswords, now } = deps
  const find = createTunnelLookup(deps)
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/passwords`,
    on: ['shared'],
    id: 'listTunnelPasswords',
    summary: 'List the temporary passwords of a tunnel that are good now.',
    params: TunnelParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('passwords', PasswordView) },
    async handle({ principal, params, query }) {
      const { tunnel, scope } = await find(principal, params, NEEDS)
      const live = tunnelPasswords
        .list({ namespace: scope.namespace })
        .filter(({ spec }) => spec.tunnelRef.name === tunnel.metadata.name && Date.parse(spec.expiresAt) > now().getTime())
      const { items, nextCursor } = page(live, query, resourceKey)
      return { status: 200, data: { passwords: items.map(passwordView), nextCursor } }
    },
  })
}
