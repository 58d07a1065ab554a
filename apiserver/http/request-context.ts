import { randomUUID } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import { isIPv6 } from 'node:net'
import type { Principal } from './route.ts'

/** State of a request while it runs; the middlewares fill it in. */
export interface RequestContext {
  readonly requestId: string
  /** Arrival time, as `performance.now()`. */
  readonly startedAt: number
  /** Template of the matching route; absent when no route matches. */
  route?: string
  principal?: Principal
  /** Whether a page of the dashboard sent the request with its session cookie; the check of `Origin` has passed then. Set by apiserver/dashboard alone. */
  isOfDashboard?: true
  /** Checks whether the session of the dashboard is still open. Set with `isOfDashboard`. */
  isSessionOpen?: () => Promise<boolean>
  /** Checks whether the caller's token is still accepted. Set with `principal`. */
  isStillAccepted?: () => Promise<boolean>
}

const contexts = new WeakMap<Request, RequestContext>()

/** Form of a caller's own request id; any other text is replaced. */
const SANE_ID = /^[A-Za-z0-9._:-]{1,128}$/

/** Returns the caller's own request id if its form is valid, else a new one. */
export function requestIdOf(given: string | undefined): string {
  return given !== undefined && SANE_ID.test(given) ? given : randomUUID()
}

/** Creates the middleware that sets the request's context and the answer's `X-Request-Id`. Must come first. */
export function requestContext(): RequestHandler {
  return function requestContext(req, res, next) {
    const requestId = requestIdOf(req.get('X-Request-Id'))
    contexts.set(req, { requestId, startedAt: performance.now() })
    res.setHeader('X-Request-Id', requestId)
    next()
  }
}

/** Returns the context of a request. @throws Error when {@link requestContext} did not run for the request */
export function contextOf(req: Request): RequestContext {
  const context = contexts.get(req)
  if (!context) throw new Error('the request has no context: requestContext() must be the first middleware')
  return context
}

/** Normalizes a peer address: `::ffff:192.0.2.1`, the form of a dual-stack socket, becomes `192.0.2.1`. */
export function sourceIpOf(address: string | undefined): string {
  if (address === undefined) return 'unknown'
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address
}

/** Returns the rate limit key of an address: the IPv4 address, or the /64 of an IPv6 address, which one host has to itself. */
export function sourceKeyOf(ip: string): string {
  if (!isIPv6(ip)) return ip
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...rest].slice(0, 4).join(':')
}
