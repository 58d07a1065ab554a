import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
  Router,
} from 'express'
import type { Logger } from 'pino'
import { contextOf, requestContext } from './request-context.ts'
import { authenticate, type AuthenticateDeps } from '../auth/authenticate.ts'
import { readJsonBody, requestParser } from './request-parser.ts'
import { errorBody, toApiError, ApiError, wrongField } from './errors.ts'
import { sendEvents } from './event-stream.ts'
import { accessLog, type ApiMetrics } from './access-log.ts'
import { type ApiLimits, createFailureLimiter, createRateLimiter } from './rate-limit.ts'
import { type AnyRoute, type Listener, literalFirst, type Reply } from './route.ts'
import { isStoreError } from '../../store/port.ts'
import { createUnknownPath } from './default-responses.ts'

/** Maximum length of a URL in characters. */
const URL_MAX = 8_192
const READS = new Set(['GET', 'HEAD'])

export interface RequestLimiters {
  readonly read: ReturnType<typeof createRateLimiter>
  readonly write: ReturnType<typeof createRateLimiter>
  readonly countFailure: ReturnType<typeof createFailureLimiter>
}

/** Creates the rate limiters that all listeners share: a principal has one allowance on both. */
export function createRequestLimiters(limits: ApiLimits): RequestLimiters {
  return {
    read: createRateLimiter({ perSecond: limits.readRate, burst: limits.readBurst }),
    write: createRateLimiter({ perSecond: limits.writeRate, burst: limits.writeBurst }),
    countFailure: createFailureLimiter(limits.failedAuthPerMinute),
  }
}

export interface AppDeps {
  readonly listener: Listener
  /** All routes of the API; the app serves those of `listener`, and all of them to the dashboard. */
  readonly routes: readonly AnyRoute[]
  /** Served before authentication: health, discovery, `/openapi.json`, `/docs`. */
  readonly open?: Router | undefined
  readonly verifyJwt: AuthenticateDeps['verifyJwt']
  readonly verifyApiToken: AuthenticateDeps['verifyApiToken']
  readonly limiters: RequestLimiters
  readonly metrics: ApiMetrics
  readonly log: Logger
  /** Addresses or ranges of proxies whose `X-Forwarded-For` is trusted. None when absent. */
  readonly trustedProxies?: readonly string[] | undefined
}

/**
 * Creates the API of one listener from its routes. An unknown path is 404; an unknown method is 405 with `Allow`. A request of the dashboard reaches the
 * routes of all listeners.
 */
export function createApp(deps: AppDeps): Express {
  const { listener, metrics, log, limiters } = deps
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing')
  app.set('query parser', false).set('trust proxy', [...(deps.trustedProxies ?? [])])
  app.use(requestContext(), accessLog({ listener, metrics, log }), securityHeaders(), refuseLongUrl)
  if (deps.open) app.use(deps.open)
  const caller = [authenticate({ ...deps, countFailure: limiters.countFailure }), limitRate(limiters)]
  const ofListener = createRouter(
    deps.routes.filter(({ on }) => on.includes(listener)),
    caller,
  )
  const ofDashboard = createRouter(deps.routes, caller)
  // The dashboard's pages can call one origin alone, so their requests reach the routes of every listener.
  app.use((req, res, next) => (contextOf(req).isOfDashboard ? ofDashboard : ofListener)(req, res, next))
  const unknownPath = createUnknownPath(deps.routes, listener)
  app.use((req) => {
    throw new ApiError('not_found', unknownPath(req.path))
  })
  app.use(answerError(log))
  return app
}

/** Creates the router of routes. `caller` are the middlewares that authenticate the caller and limit its rate. */
function createRouter(routes: readonly AnyRoute[], caller: readonly RequestHandler[]): Router {
  const router = Router({ caseSensitive: true, strict: true })
  for (const path of literalFirst(new Set(routes.map((route) => route.path)))) {
    const here = router.route(path.replaceAll(/\{(\w+)\}/g, ':$1')).all(nameRoute(path))
    const ofPath = routes.filter((route) => route.path === path)
    for (const route of ofPath) here[route.method](...caller, serve(route))
    here.all(methodNotAllowed(ofPath))
  }
  return router
}

const refuseLongUrl: RequestHandler = (req, _res, next) => {
  if (req.originalUrl.length > URL_MAX) throw wrongField('url', `is longer than ${URL_MAX} characters`)
  next()
}

function nameRoute(path: string): RequestHandler {
  return function nameRoute(req, _res, next) {
    contextOf(req).route = path
    next()
  }
}

function principalOf(req: Request) {
  const { principal } = contextOf(req)
  if (!principal) throw new Error('the request was not authenticated')
  return principal
}

function limitRate({ read, write }: RequestLimiters): RequestHandler {
  return async function limitRate(req, res, next) {
    const limit = READS.has(req.method) ? read : write
    for (const [name, value] of Object.entries(await limit(principalOf(req).user))) res.setHeader(name, value)
    next()
  }
}

function serve(route: AnyRoute): RequestHandler {
  const parse = requestParser(route)
  return async function serveRoute(req, res) {
    // The content of a GET has no meaning (RFC 9110, section 9.3.1).
    const body = route.method === 'get' ? {} : await readJsonBody(req, route)
    const { requestId, startedAt: arrivedAt } = contextOf(req)
    const reply = await route.handle(parse(req, { principal: principalOf(req), requestId, arrivedAt, body }))
    if (reply.events) sendEvents(req, res, reply.events)
    else send(res, reply)
  }
}

function send(res: Response, { status, data, etag }: Reply): void {
  if (etag !== undefined) res.setHeader('ETag', `"${etag}"`)
  res.status(status).json({ msg: 'OK', data })
}

function methodNotAllowed(routes: readonly AnyRoute[]): RequestHandler {
  const methods = routes.map(({ method }) => method.toUpperCase())
  const allow = [...(methods.includes('GET') ? ['HEAD'] : []), ...methods].sort().join(', ')
  return function methodNotAllowed(req) {
    throw new ApiError('method_not_allowed', `${req.method} is not allowed here; allowed: ${allow}`, {
      headers: { Allow: allow },
    })
  }
}

function answerError(log: Logger): ErrorRequestHandler {
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- Express recognizes an error handler by its four parameters
  return function answerError(thrown: unknown, req, res, _next) {
    const { requestId, route } = contextOf(req)
    const error = toApiError(thrown)
    if (error.code === 'internal') log.error({ err: thrown, requestId, route }, 'a request failed')
    else if (error.code === 'unavailable') log.warn({ err: thrown, requestId, route }, 'a request could not be served')
    else if (isStoreRejection(thrown)) log.warn({ err: thrown, requestId, route }, 'the store rejected a write')
    if (res.headersSent) {
      res.destroy()
      return
    }
    for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
    res.status(error.status).json(errorBody(error, requestId))
    // Reads and drops the rest of a rejected body, so that a caller that is still sending receives the answer.
    req.resume()
  }
}

/** Whether the store rejected a write that passed the checks of requests: the administrator needs the reason in the log. */
function isStoreRejection(thrown: unknown): boolean {
  return isStoreError(thrown, 'forbidden') || isStoreError(thrown, 'invalid')
}

/** Security headers of every answer. The page `/docs` sets a weaker Content-Security-Policy for itself. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

/**
 * Creates the middleware that sets the security headers. Strict-Transport-Security is left to the proxy of a public installation: on `localhost`
 * it would apply to every other port of the machine.
 */
export function securityHeaders(): RequestHandler {
  return function securityHeaders(_req, res, next) {
    for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value)
    next()
  }
}
