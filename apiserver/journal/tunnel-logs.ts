import { z } from 'zod'
import type { Tunnel } from '../../crds/tunnel.ts'
import { matchesFilter } from '../../journal/search.ts'
import type { RequestFilter } from '../../journal/port.ts'
import { whenGone } from '../resources/cache-waits.ts'
import { wrongField } from '../http/errors.ts'
import { LONGEST_MS } from '../http/event-stream.ts'
import { type AnyRoute, type EventSource, type Principal, route } from '../http/route.ts'
import type { JournalDeps } from './journal-deps.ts'
import { createSampled } from './sampled.ts'
import {
  CanonicalIp,
  journalPage,
  pageOf,
  requireOrder,
  SpanQuery,
  RequestView,
  requestView,
  ConnectionView,
  connectionView,
  StatsView,
  statsView,
} from './journal-schemas.ts'
import { PageQuery } from '../http/paging.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'
import { TUNNEL_PATH, TunnelParams } from '../tunnels/tunnel-lookup.ts'
import { percentEncoded } from '../../shared/percent-encoding.ts'
import { METHOD_MAX, REQUEST_REASONS } from '../../shared/tunnel-decisions.ts'

const statusRule = 'must be a status from 100 to 599'
const toInteger = (value: unknown): unknown => (typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value)

/** Standard methods (RFC 9110, section 9; RFC 5789). Methods are case-sensitive: `get` is not one of these. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']
const methodRule = `must be a method in the case in which it was sent, such as ${METHODS.slice(0, 7).join(', ')}`
const Method = z
  .string()
  .max(METHOD_MAX)
  .regex(/^\S+$/, methodRule)
  .refine((method) => METHODS.includes(method) || !METHODS.includes(method.toUpperCase()), methodRule)

/** Query parameters of the request log; a value that no record can have is rejected. */
const RequestQuery = {
  ...SpanQuery,
  method: Method.optional().describe('Only requests with this method.'),
  status: z
    .preprocess(toInteger, z.int(statusRule).min(100, statusRule).max(599, statusRule))
    .optional()
    .describe('Only answers with this status.'),
  statusClass: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']).optional().describe('Only answers of this class.'),
  sourceIp: CanonicalIp.optional().describe('Only requests from this address.'),
  pathPrefix: z
    .string()
    .max(2_048)
    .regex(/^[^?]*$/, 'must not hold a query, which is not recorded')
    .optional()
    .describe(
      'Only paths with this prefix. Characters that are not printable ASCII count as they are recorded, percent-encoded.',
    ),
  origin: z.enum(['backend', 'edge']).optional().describe('Only answers of the backend, or only those of the edge.'),
  reason: z.enum(REQUEST_REASONS).optional().describe('Only requests that the edge answered or ended for this reason.'),
}
type Parsed = z.output<z.ZodObject<typeof RequestQuery>>

/** Returns the filter for a query. @throws ApiError `invalid_request` when no request can match */
function requestFilter(tunnel: string, { statusClass, pathPrefix, ...rest }: Parsed): RequestFilter {
  const { status } = rest
  if (status !== undefined && statusClass !== undefined && statusClass !== classOf(status))
    throw wrongField('statusClass', `must be ${classOf(status)} or be left out, with status=${status}`)
  const recorded = pathPrefix === undefined ? {} : { pathPrefix: percentEncoded(Buffer.from(pathPrefix).toString('latin1')) }
  return { tunnel, ...rest, ...recorded, statusClass: statusClass && Number(statusClass[0]) }
}

const classOf = (status: number): string => `${Math.floor(status / 100)}xx`

const SAMPLE_RULE = 'must be an integer from 1 to 1000'
const toCount = (value: unknown): unknown => (typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : value)

const Query = z.object({
  ...PageQuery,
  ...RequestQuery,
  follow: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true`: answer with server-sent events, one for each request from now on.'),
  sample: z
    .preprocess(toCount, z.int(SAMPLE_RULE).min(1, SAMPLE_RULE).max(1_000, SAMPLE_RULE))
    .optional()
    .describe(
      'With `follow=true`: maximum of requests a second. An event `skipped` has the `count` of the others of its second.',
    ),
})

/** `GET …/tunnels/{t}/requests`: the request log, newest first; with `follow=true` the requests from now on, as server-sent events. */
export function listTunnelRequests(deps: JournalDeps): AnyRoute {
  const { find, journal } = deps
  return route({
    method: 'get',
    path: `${TUNNEL_PATH}/requests`,
    on: ['shared'],
    id: 'listTunnelRequests',
    summary: 'List the requests through a tunnel.',
    description: [
      'With `follow=true` the answer is `text/event-stream`: one event `request` for each request from now on that matches the filters, or with `sample` for some of them.',
      'It has no pages: `cursor` and a past `to` are rejected, and `limit` is ignored. The stream ends when the tunnel is deleted, soon after `to`, or after one hour.',
    ].join(' '),
    params: TunnelParams,
    query: Query,
    streams: true,
    replies: { 200: listOf('requests', RequestView) },
    async handle({ principal, params, query }) {
      const { tunnel } = await find(principal, params)
      requireOrder(query)
      const { limit, cursor, follow, sample, ...search } = query
      const filter = requestFilter(tunnel.metadata.uid, search)
      if (follow === 'true') {
        requireFollowable(query, deps.now())
        return { status: 200, data: {}, events: following(deps, { principal, tunnel, filter, sample }) }
      }
      if (sample !== undefined) throw wrongField('sample', 'needs follow=true')
      const { shown, nextCursor } = pageOf(await journal.requests(filter, journalPage({ limit, cursor })), limit)
      return { status: 200, data: { requests: shown.map(requestView), nextCursor } }
    },
  })
}

/** Checks the query of a stream, which starts now and has no pages. @throws ApiError `invalid_request` */
function requireFollowable({ cursor, to }: z.output<typeof Query>, now: Date): void {
  if (cursor !== undefined) throw wrongField('cursor', 'cannot be used with follow=true, which begins now')
  if (to !== undefined && to <= now.getTime()) throw wrongField('to', 'must be ahead with follow=true, which begins now')
}

const ignore = () => undefined

/** Time after `to` for which a stream stays open: a request is reported once it has ended and its edge has shipped its record. */
const LATE_MS = 2_000

interface Following {
  readonly principal: Principal
  readonly tunnel: Tunnel
  readonly filter: RequestFilter
  /** Maximum of requests a second; unlimited when absent. */
  readonly sample?: number | undefined
}

/** Creates the source of request events. @throws ApiError `rate_limited` */
function following(
  { journal, access, tunnels, followers, now }: JournalDeps,
  { principal, tunnel, filter, sample = Infinity }: Following,
): EventSource {
  const releaseSlot = followers.take(principal.user)
  const { uid, namespace } = tunnel.metadata
  return {
    start(send, end) {
      const sampled = createSampled(send, sample)
      const stop = journal.follow(uid, (record) => {
        if (matchesFilter(record, filter)) sampled.offer(() => ({ id: record.id, event: 'request', data: requestView(record) }))
      })
      const ended = new AbortController()
      whenGone(tunnels, tunnel, ended.signal).then(end, ignore)
      const untilMs = filter.to === undefined ? Infinity : filter.to - now().getTime() + LATE_MS
      const timer = untilMs <= LONGEST_MS ? setTimeout(end, untilMs) : undefined
      return () => {
        clearTimeout(timer)
        ended.abort()
        stop()
        sampled.stop()
        releaseSlot()
      }
    },
    isStillAuthorized: () => access.may(principal, { verb: 'get', resource: 'tunnels', namespace }),
  }
}

export const ConnectionsQuery = z.object({
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
