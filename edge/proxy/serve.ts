import { Buffer } from 'node:buffer'
import { randomUUIDv7 } from 'node:crypto'
import { isIP } from 'node:net'
import type { Arrival } from './arrival.ts'
import { Exchange } from './exchange.ts'
import {
  CHALLENGE_PATH,
  firstRejection,
  REQUEST_CHECKS,
  type ObservedRequest,
  type Rejection,
  METHOD_MAX,
} from '../../shared/tunnel-decisions.ts'
import { percentEncoded } from '../../shared/percent-encoding.ts'
import type { Route } from '../route.ts'
import type { ProxyContext } from './context.ts'
import { responseFor } from './errors.ts'
import type { Visitor, Accepted } from './visitor.ts'
import { type AddressList, plainAddress } from '../../crds/formats/address-list.ts'
import { type Fields, valueOf } from './head/fields.ts'
import type { RequestRecord } from '../../journal/port.ts'
import { ABSOLUTE, hostOf, pathOf } from './head/request-head.ts'

/**
 * Decides about a request (docs/edge.md, "Decisions about requests"). Responds to a rejected one, or returns the exchange that has
 * begun.
 */
export function serve(context: ProxyContext, visitor: Visitor, arrival: Arrival): Exchange | undefined {
  const { routes, trusted } = context
  const { head, peer, scheme } = arrival
  const id = randomUUIDv7()
  const { hostname: host, path } = head
  const route = routeOf(host, routes)
  const isTrusted = trusted?.allows(peer) ?? false
  const believed = isTrusted && trusted ? believedVisitor(head, peer, scheme, trusted) : { sourceIp: peer, scheme }
  const challenge = path.startsWith(CHALLENGE_PATH) ? context.challenge(host, path.slice(CHALLENGE_PATH.length)) : undefined
  const observed: ObservedRequest = {
    malformed: undefined,
    scheme: believed.scheme,
    serverName: serverNameOf(arrival, believed.scheme),
    host,
    method: head.method,
    path,
    sourceIp: believed.sourceIp,
    challengeKnown: challenge !== undefined,
    tunnel: route,
    overload: overloadOf(context, route, arrival.surplus),
    upstream: 'unknown',
  }
  const rejection = firstRejection(REQUEST_CHECKS, observed)
  if (rejection === undefined && route) {
    const visit = { id, scheme: believed.scheme, peer, trusted: isTrusted, port: context.publicPorts[believed.scheme] }
    const exchange = new Exchange(context, visitor, { arrival, route, visit, observed })
    exchange.start()
    return exchange
  }
  refuse(context, visitor, { rejection: rejection ?? UNREACHABLE, observed, arrival, route, id, challenge })
  return undefined
}

/**
 * Returns the server name of the handshake. A balancer that ends TLS does not report it, and a resumed TLS 1.2 session does not either:
 * then it counts as equal to the Host.
 */
const serverNameOf = ({ scheme, serverName, head }: Arrival, believed: Arrival['scheme']): string | undefined =>
  scheme === believed && serverName !== null ? serverName : head.hostname

/** Never used: the checks reject every request without a tunnel. It satisfies the types. */
const UNREACHABLE: Rejection = { status: 404, reason: 'unknown_host', detail: 'no tunnel has this hostname' }

interface Refusal {
  readonly rejection: Rejection
  readonly observed: ObservedRequest
  readonly arrival: Arrival
  readonly route: Route | undefined
  readonly id: string
  readonly challenge: string | undefined
}

function refuse(context: ProxyContext, visitor: Visitor, refusal: Refusal): void {
  const { rejection, observed, arrival, route, id, challenge } = refusal
  const { status, reason } = rejection
  const location = `https://${observed.host}${portSuffix(context.publicPorts.https)}${arrival.head.target === '*' ? '/' : percentEncoded(arrival.head.target)}`
  const answer = responseFor(rejection, { id, head: arrival.head, location, challenge })
  visitor.answer(answer)
  const { method, path, sourceIp } = observed
  const { at, began, protocol } = arrival
  const bytesOut = method === 'HEAD' ? 0 : Buffer.byteLength(answer.body)
  const about = { id, at, began, method, path, sourceIp, protocol }
  recordRejected(context, route, { ...about, status, reason, bytesIn: visitor.bytesIn, bytesOut })
}

const portSuffix = (port: number): string => (port === 443 ? '' : `:${port}`)

function overloadOf({ load, limits }: ProxyContext, route: Route | undefined, surplus: boolean): ObservedRequest['overload'] {
  if (surplus) return 'edge'
  return route && load.of(route.hostname) >= limits.requestsPerTunnel ? 'tunnel' : 'none'
}

/** Address and scheme of a visitor, who may be behind balancers. */
interface BelievedVisitor {
  readonly sourceIp: string
  readonly scheme: 'http' | 'https'
}

/** Returns the visitor that a trusted balancer reports: the last address in X-Forwarded-For that is not a trusted balancer itself. */
function believedVisitor(fields: Fields, peer: string, scheme: 'http' | 'https', trusted: AddressList): BelievedVisitor {
  const proto = valueOf(fields, 'x-forwarded-proto')?.toLowerCase()
  return {
    sourceIp: lastOutside(valueOf(fields, 'x-forwarded-for'), peer, trusted),
    scheme: proto === 'http' || proto === 'https' ? proto : scheme,
  }
}

function lastOutside(chain: string | undefined, peer: string, trusted: AddressList): string {
  let nearest = peer
  for (const hop of (chain ?? '').split(',').reverse()) {
    const address = plainAddress(hop.trim())
    if (isIP(address) === 0) return nearest
    nearest = address
    if (!trusted.allows(address)) return nearest
  }
  return nearest
}

/** Journal record of a request that the edge itself answered. */
type Refused = Omit<RequestRecord, 'tunnel' | 'origin' | 'durationMs'> & {
  /** Arrival by the monotonic clock. */
  readonly began: number
}

/** Counts a rejected request, and records it when it names a tunnel. */
function recordRejected(context: ProxyContext, route: Route | undefined, { began, ...refused }: Refused): void {
  if (!route) return context.metrics.stopped(refused.status, refused.reason ?? '')
  const durationMs = Math.round(context.now() - began)
  const record = { ...refused, tunnel: route.id, durationMs, origin: 'edge' } as const
  context.journal.request(record)
  context.metrics.finished(record)
}

const LABEL = 16

/** Returns the tunnel of a Host value in lower case without its port. */
function routeOf(host: string, routes: ProxyContext['routes']): Route | undefined {
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

interface Malformed {
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
  const id = randomUUIDv7()
  const answer = responseFor(rejection, { id, head: undefined, location: '', challenge: undefined })
  visitor.answer(answer)
  const { hostname = '', method = '', path = '' } = glimpse ?? {}
  recordRejected(context, routeOf(hostname, context.routes), {
    id,
    at: context.date(),
    began: context.now(),
    method,
    path,
    protocol,
    status: rejection.status,
    reason: rejection.reason,
    sourceIp: accepted.peer.address,
    bytesIn: visitor.bytesIn,
    bytesOut: Buffer.byteLength(answer.body),
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
