import type { RequestRecord } from '../../journal/port.ts'
import type { Route } from '../route.ts'
import type { ProxyContext } from './context.ts'
import { Buffer } from 'node:buffer'
import { METHOD_MAX, type Rejection } from '../../shared/tunnel-decisions.ts'
import type { Accepted, Visitor } from './visitor.ts'
import { responseFor } from './errors.ts'
import { ABSOLUTE, hostOf, pathOf } from './head/request-head.ts'
import { requestId } from './request-ids.ts'

/** Journal record of a request that the edge itself answered. */
export type Refused = Omit<RequestRecord, 'tunnel' | 'origin' | 'durationMs'> & {
  /** Arrival by the monotonic clock. */
  readonly began: number
}

/** Counts a rejected request, and records it when it names a tunnel. */
export function recordRejected(context: ProxyContext, route: Route | undefined, { began, ...refused }: Refused): void {
  if (!route) return context.metrics.stopped(refused.status, refused.reason ?? '')
  const durationMs = Math.round(context.now() - began)
  const record = { ...refused, tunnel: route.id, durationMs, origin: 'edge' } as const
  context.journal.request(record)
  context.metrics.finished(record)
}

const LABEL = 16

/** Returns the tunnel of a Host value in lower case without its port. */
export function routeOf(host: string, routes: ProxyContext['routes']): Route | undefined {
  const { domain } = routes
  const isBelow = host.length === LABEL + 1 + domain.length && host.charCodeAt(LABEL) === 0x2e && host.endsWith(domain)
  return isBelow ? routes.get(host.slice(0, LABEL)) : undefined
}

/** Readable part of a malformed request, for the request log of the tunnel that it names. */
export interface Glimpse {
  /** Host name, as {@link hostOf} returns it. */
  readonly hostname: string
  readonly method: string
  /** Path without the query. */
  readonly path: string
}

export interface Malformed {
  readonly rejection: Rejection
  /** Undefined: no tunnel can be determined. */
  readonly glimpse: Glimpse | undefined
  readonly accepted: Pick<Accepted, 'peer'>
  readonly protocol: 'http/1.1' | 'h2'
}

/** Rejects a malformed request. It has no single meaning, so no checks are applied. */
export function rejectMalformed(
  context: ProxyContext,
  visitor: Visitor,
  { rejection, glimpse, accepted, protocol }: Malformed,
): void {
  const id = requestId()
  const answer = responseFor(rejection, { id, head: undefined, location: '', challenge: undefined })
  visitor.answer(answer)
  const { hostname = '', method = '', path = '' } = glimpse ?? {}
  recordRejected(context, routeOf(hostname, context.routes), {
    ...{ id, at: context.date(), began: context.now(), method, path, protocol },
    ...{ status: rejection.status, reason: rejection.reason, sourceIp: accepted.peer.address },
    ...{ bytesIn: visitor.bytesIn, bytesOut: Buffer.byteLength(answer.body) },
  })
}

const REQUEST_LINE = /^(\S+) (\S*)/
const HOST = /\r\nhost:([^\r\n]*)(?=\r)/gi

/**
 * Reads a glimpse from the text of a head, latin1, as far as it has arrived; an absolute form decides the host. Undefined: the text
 * names no host, or several.
 */
export function glimpseOf(text: string): Glimpse | undefined {
  const [host, other] = [...text.matchAll(HOST)].map(([, value = '']) => hostOf(value.trim()))
  const { method, authority, path } = askedIn(text)
  const hostname = authority ?? host
  return hostname === undefined || other !== undefined ? undefined : { hostname, method, path }
}

function askedIn(text: string) {
  const [, method = '', target = ''] = REQUEST_LINE.exec(text) ?? []
  const [, , authority, rest = target] = ABSOLUTE.exec(target) ?? []
  const host = authority === undefined ? undefined : hostOf(authority)
  return { method: method.slice(0, METHOD_MAX), authority: host, path: pathOf(rest) }
}

/** Reads a glimpse from an HTTP/2 header block: names and values in turn. */
export function glimpseOfStream(raw: readonly string[]): Glimpse | undefined {
  const of = (name: string): readonly string[] => raw.filter((_text, index) => index % 2 === 1 && raw[index - 1] === name)
  const hosts = new Set([...of(':authority'), ...of('host')].map((host) => hostOf(host)))
  const [hostname] = hosts
  if (hostname === undefined || hosts.size > 1) return undefined
  return { hostname, method: (of(':method')[0] ?? '').slice(0, METHOD_MAX), path: pathOf(of(':path')[0] ?? '') }
}
