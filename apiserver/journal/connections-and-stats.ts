import { z } from 'zod'
import type { JournalDeps } from './journal-deps.ts'
import { CanonicalIp, journalPage, pageOf, requireOrder, SpanQuery } from './journal-query.ts'
import { ConnectionView, connectionView, StatsView, statsView } from './journal-views.ts'
import { PageQuery } from '../http/paging.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { TUNNEL_PATH, TunnelParams } from '../tunnels/tunnel-lookup.ts'

const ConnectionsQuery = z.object({
  ...PageQuery,
  ...SpanQuery,
  type: z.enum(['connect', 'disconnect']).optional().describe('Only connects, or only disconnects.'),
  clientIp: CanonicalIp.optional().describe('Only clients with this address.'),
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
    query: ConnectionsQuery,
    replies: { 200: listOf('connections', ConnectionView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params)
      requireOrder(query)
      const { limit, cursor, include, ...filter } = query
      const records = await journal.connections(
        { ...filter, tunnel: tunnel.metadata.uid, refused: include === 'refused' },
        journalPage({ limit, cursor }),
      )
      const { shown, nextCursor } = pageOf(records, limit)
      return { status: 200, data: { connections: shown.map(connectionView), nextCursor } }
    },
  })
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const WINDOW_MS = { '1h': HOUR_MS, '24h': 24 * HOUR_MS, '7d': 7 * 24 * HOUR_MS }

const StatsQuery = z.object({
  window: z.enum(['1h', '24h', '7d']).default('24h').describe('Length of the window, which ends with the current minute.'),
})

/** `GET …/tunnels/{t}/stats`: statistics for a dashboard, in whole minutes up to the current one. */
export function getTunnelStats({ find, journal, now }: JournalDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/stats`,
    on: ['shared'],
    id: 'getTunnelStats',
    summary: 'Get statistics of the requests through a tunnel.',
    params: TunnelParams,
    query: StatsQuery,
    replies: { 200: z.object({ stats: StatsView }) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params)
      const to = (Math.floor(now().getTime() / MINUTE_MS) + 1) * MINUTE_MS
      const span = { from: to - WINDOW_MS[query.window], to }
      return { status: 200, data: { stats: statsView(await journal.stats(tunnel.metadata.uid, span), span) } }
    },
  })
}
