import { z } from 'zod'
import type { Tunnel } from '../../crds/tunnel.ts'
import { matchesFilter } from '../../journal/matches-filter.ts'
import type { RequestFilter } from '../../journal/port.ts'
import { whenGone } from '../resources/cache-waits.ts'
import { wrongField } from '../http/errors.ts'
import { LONGEST_MS } from '../http/event-stream.ts'
import type { EventSource } from '../http/route.ts'
import type { JournalDeps } from './journal-deps.ts'
import { journalPage, requireOrder, shownOf } from './journal-query.ts'
import { RequestView, requestView } from './journal-views.ts'
import { PageQuery } from '../http/paging.ts'
import { requestFilter, RequestQuery } from './request-filter.ts'
import { type AnyRoute, type Principal, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { TUNNEL_PATH, TunnelParams } from '../tunnels/tunnel-lookup.ts'

const Query = z.object({
  ...PageQuery,
  ...RequestQuery,
  follow: z.enum(['true', 'false']).optional().describe('`true`: server-sent events, one a request from now on.'),
})

/** `GET …/tunnels/{t}/requests`: the request log, newest first; with `follow=true` what comes from now on, as server-sent events. */
export function listTunnelRequests(deps: JournalDeps): AnyRoute {
  const { find, journal } = deps
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/requests`,
    on: ['shared'],
    id: 'listTunnelRequests',
    summary: 'List the requests that came through a tunnel.',
    description: [
      'With `follow=true` the answer is `text/event-stream`: one event `request` for each request from now on that passes the filters.',
      'It has no pages: `cursor` is refused, as is a `to` that is past, and `limit` means nothing. It ends when the tunnel does, soon after `to`, and after an hour.',
    ].join(' '),
    params: TunnelParams,
    query: Query,
    streams: true,
    replies: { 200: listOf('requests', RequestView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params)
      requireOrder(query)
      const { limit, cursor, follow, ...search } = query
      const filter = requestFilter(tunnel.metadata.uid, search)
      if (follow === 'true') {
        requireFollowable(query, deps.now())
        return { status: 200, data: {}, events: following(deps, { principal, tunnel, filter }) }
      }
      const { shown, nextCursor } = shownOf(await journal.requests(filter, journalPage({ limit, cursor })), limit)
      return { status: 200, data: { requests: shown.map(requestView), nextCursor } }
    },
  })
}

/** What was there before now is not followed. @throws ApiError `invalid_request` */
function requireFollowable({ cursor, to }: z.output<typeof Query>, now: Date): void {
  if (cursor !== undefined) throw wrongField('cursor', 'cannot be used with follow=true, which begins now')
  if (to !== undefined && to <= now.getTime()) throw wrongField('to', 'must be ahead with follow=true, which begins now')
}

const ignore = () => undefined

/** A request is told of once it is over, and its edge has shipped it. */
const LATE_MS = 2_000

interface Following {
  readonly principal: Principal
  readonly tunnel: Tunnel
  readonly filter: RequestFilter
}

/** @throws ApiError `rate_limited` */
function following(
  { journal, access, tunnels, followers, now }: JournalDeps,
  { principal, tunnel, filter }: Following,
): EventSource {
  const leave = followers.take(principal.user)
  const { uid, namespace } = tunnel.metadata
  return {
    start(send, end) {
      const stop = journal.follow(uid, (record) => {
        if (matchesFilter(record, filter)) send({ id: record.id, event: 'request', data: requestView(record) })
      })
      const left = new AbortController()
      whenGone(tunnels, tunnel, left.signal).then(end, ignore)
      const untilMs = filter.to === undefined ? Infinity : filter.to - now().getTime() + LATE_MS
      const timer = untilMs <= LONGEST_MS ? setTimeout(end, untilMs) : undefined
      return () => {
        clearTimeout(timer)
        left.abort()
        stop()
        leave()
      }
    },
    mayGoOn: () => access.may(principal, { verb: 'get', resource: 'tunnels', namespace }),
  }
}
