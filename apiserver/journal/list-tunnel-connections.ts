import { z } from 'zod'
import type { JournalDeps } from './journal-deps.ts'
import { Address, journalPage, requireOrder, shownOf, SpanQuery } from './journal-query.ts'
import { ConnectionView, connectionView } from './journal-views.ts'
import { PageQuery } from '../http/paging.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { TUNNEL_PATH, TunnelParams } from '../tunnels/tunnel-lookup.ts'

const Query = z.object({
  ...PageQuery,
  ...SpanQuery,
  type: z.enum(['connect', 'disconnect']).optional().describe('Only connects, or only disconnects.'),
  clientIp: Address.optional().describe('Only clients with this address.'),
  include: z.literal('refused').optional().describe('`refused`: includes rejected logins.'),
})

/** `GET …/tunnels/{t}/connections`: connects and disconnects of SSH clients, newest first. */
export function listTunnelConnections({ find, journal }: JournalDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/connections`,
    on: ['shared'],
    id: 'listTunnelConnections',
    summary: 'List the connects and disconnects of the SSH clients of a tunnel.',
    params: TunnelParams,
    query: Query,
    replies: { 200: listOf('connections', ConnectionView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params)
      requireOrder(query)
      const { limit, cursor, include, ...filter } = query
      const records = await journal.connections(
        { ...filter, tunnel: tunnel.metadata.uid, refused: include === 'refused' },
        journalPage({ limit, cursor }),
      )
      const { shown, nextCursor } = shownOf(records, limit)
      return { status: 200, data: { connections: shown.map(connectionView), nextCursor } }
    },
  })
}
