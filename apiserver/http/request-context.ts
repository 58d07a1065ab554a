import { randomUUID } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import type { Principal } from './route.ts'

/** State of a request while it runs; the middlewares fill it in. */
export interface RequestContext {
  readonly requestId: string
  /** Arrival time, as `performance.now()`. */
  readonly startedAt: number
  /** Template of the matching route; absent when no route matches. */
  route?: string
  principal?: Principal
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
