import { type Arrival, Exchange } from './exchange.ts'
import { Buffer } from 'node:buffer'
import {
  CHALLENGE_PATH,
  firstRejection,
  REQUEST_CHECKS,
  type ObservedRequest,
  type Rejection,
} from '../../shared/tunnel-decisions.ts'
import type { Route } from '../route.ts'
import type { ProxyContext } from './context.ts'
import { responseFor } from './errors.ts'
import { recordRejected, routeOf } from './refusals.ts'
import { requestId } from './request-ids.ts'
import type { Visitor } from './visitor.ts'
import { isIP } from 'node:net'
import { type AddressList, plainAddress } from '../../crds/formats/address-list.ts'
import { type Fields, valueOf } from './head/fields.ts'

/**
 * Decides about a request (docs/edge.md, "Decisions about requests"). Responds to a rejected one, or returns the exchange that has
 * begun.
 */
export function serve(context: ProxyContext, visitor: Visitor, arrival: Arrival): Exchange | undefined {
  const { routes, trusted } = context
  const { head, peer, scheme } = arrival
  const id = requestId()
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
  const location = `https://${observed.host}${portSuffix(context.publicPorts.https)}${arrival.head.target === '*' ? '/' : arrival.head.target}`
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
export interface BelievedVisitor {
  readonly sourceIp: string
  readonly scheme: 'http' | 'https'
}

/** Returns the visitor that a trusted balancer reports: the last address in X-Forwarded-For that is not a trusted balancer itself. */
export function believedVisitor(fields: Fields, peer: string, scheme: 'http' | 'https', trusted: AddressList): BelievedVisitor {
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
