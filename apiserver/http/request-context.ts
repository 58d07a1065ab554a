import { randomUUID } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import type { Principal } from './route.ts'

/** What is known of a request while it runs; filled in as it passes the middlewares. */
export interface RequestContext {
  readonly requestId: string
  /** `performance.now()` at its arrival. */
  readonly startedAt: number
  /** Template of the route that took it; absent when none did. */
  route?: string
  principal?: Principal
  /** Whether the caller's token would be accepted now, too. Set with `principal`. */
  isStillAccepted?: () => Promise<boolean>
}

const contexts = new WeakMap<Request, RequestContext>()

/** Form of a caller's own request id that is taken over; any other is replaced. */
const SANE_ID = /^[A-Za-z0-9._:-]{1,128}$/

/** A caller's own request id when it has a sane form, else a new one. */
export function requestIdOf(given: string | undefined): string {
  return given !== undefined && SANE_ID.test(given) ? given : randomUUID()
}

/** Gives each request its context, and each answer its `X-Request-Id`. Must come first. */
export function requestContext(): RequestHandler {
  return function requestContext(req, res, next) {
    const requestId = requestIdOf(req.get('X-Request-Id'))
    contexts.set(req, { requestId, startedAt: performance.now() })
    res.setHeader('X-Request-Id', requestId)
    next()
  }
}

/** @throws Error when {@link requestContext} did not see the request */
export function contextOf(req: Request): RequestContext {
  const context = contexts.get(req)
  if (!context) throw new Error('the request has no context: requestContext() must be the first middleware')
  return context
}
