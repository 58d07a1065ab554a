import { type Request, type RequestHandler, type Response, Router } from 'express'
import { z } from 'zod'
import { fieldErrorsOf } from '../../shared/field-errors.ts'
import { API_TOKEN_PREFIX, type AuthenticateDeps, AuthenticationError } from '../auth/authenticate.ts'
import { onlyGet } from '../http/default-responses.ts'
import { ApiError, invalidRequest } from '../http/errors.ts'
import { contextOf, sourceIpOf, sourceKeyOf } from '../http/request-context.ts'
import { readJsonBody } from '../http/request-parser.ts'
import type { DashboardFile, DashboardFiles } from './dashboard-files.ts'
import { requireSameOrigin } from './same-origin.ts'
import { END_OF_SESSION, type Sessions } from './session.ts'

/** Prefix of the API for pages of the dashboard. The rest of the path is one of the REST API. Pages of earlier versions call `/dashboard/api`. */
const API = /^\/dashboard(?:\/api)?(?=\/v1\/)/

/** Name with a hash of the content, as esbuild makes them. */
const HASHED = /-[A-Z0-9]{8}\.[a-z]+$/

export interface DashboardDeps extends Pick<AuthenticateDeps, 'verifyJwt' | 'verifyApiToken' | 'countFailure'> {
  /** Undefined when the dashboard is not built. */
  readonly files: DashboardFiles | undefined
  readonly sessions: Sessions
  /** Exchanges the code of a sign-in link for a token, once. Resolves to undefined for an invalid code. Absent in an installation without links. */
  readonly redeemCode?: ((code: string) => Promise<string | undefined>) | undefined
}

const SignIn = z
  .strictObject({ token: z.string().min(1).max(8_192).optional(), code: z.string().min(1).max(256).optional() })
  .refine(({ token, code }) => (token === undefined) !== (code === undefined), { path: ['token'], error: 'is required, or code' })

/**
 * Creates the router of `/dashboard`: its pages, its files, sign-in and sign-out, and the REST API for its pages below `/dashboard/v1/`. Only there the
 * session cookie replaces the header `Authorization`; the routes at `/v1` ignore cookies. The pages reach the routes of all listeners there
 * (docs/decisions/2026-11-25-the-dashboard-reaches-every-route.md).
 */
export function createDashboard(deps: DashboardDeps): Router {
  const { files, sessions } = deps
  const router = Router({ caseSensitive: true, strict: true })

  /** Turns a request of a page into a request to the REST API with the session's token, for the routes of all listeners. */
  const toApi: RequestHandler = async function toApi(req, res, next) {
    requireSameOrigin(req)
    const { cookie } = req.headers
    const token = await sessions.tokenOf(cookie)
    if (token === undefined) {
      if (cookie !== undefined) res.setHeader('Set-Cookie', END_OF_SESSION)
      throw new ApiError('unauthenticated', 'the session has ended; sign in again')
    }
    req.headers.authorization = `Bearer ${token}`
    req.url = req.url.replace(API, '')
    contextOf(req).isOfDashboard = true
    contextOf(req).isSessionOpen = async () => (await sessions.tokenOf(cookie)) !== undefined
    next()
  }
  router.use((req, res, next) => (API.test(req.path) ? toApi(req, res, next) : next()))

  router
    .route('/dashboard/session')
    .all(named('/dashboard/session'), (req, _res, next) => {
      requireSameOrigin(req)
      next()
    })
    .post(async (req, res) => {
      const token = await tokenOfBody(req)
      const principal = await verified(req, token)
      contextOf(req).principal = principal
      res.setHeader('Set-Cookie', await sessions.begin(token))
      res.status(201).json({ msg: 'OK', data: { user: principal.user } })
    })
    .delete(async (req, res) => {
      await sessions.end(req.headers.cookie)
      res.setHeader('Set-Cookie', END_OF_SESSION)
      res.status(200).json({ msg: 'OK', data: {} })
    })
    .all(({ method }) => {
      const headers = { Allow: 'DELETE, POST' }
      throw new ApiError('method_not_allowed', `${method} is not allowed here; allowed: DELETE, POST`, { headers })
    })

  async function tokenOfBody(req: Request): Promise<string> {
    const parsed = SignIn.safeParse(await readJsonBody(req, { method: 'post', body: SignIn }))
    if (!parsed.success) throw invalidRequest(fieldErrorsOf(parsed.error))
    const { token, code } = parsed.data
    if (token !== undefined) return token
    const redeemed = await deps.redeemCode?.(code ?? '')
    if (redeemed !== undefined) return redeemed
    await countFailure(req)
    throw new ApiError('unauthenticated', 'this link was used before or is too old; sign in with a token')
  }

  async function verified(req: Request, token: string) {
    try {
      return await (token.startsWith(API_TOKEN_PREFIX) ? deps.verifyApiToken(token) : deps.verifyJwt(token))
    } catch (error) {
      if (error instanceof AuthenticationError) await countFailure(req)
      throw error
    }
  }

  const countFailure = (req: Request): Promise<void> => deps.countFailure(sourceKeyOf(sourceIpOf(req.ip)))

  router
    .route('/dashboard/assets/:name')
    .get(named('/dashboard/assets/{name}'), (req, res, next) => {
      const file = files?.assets.get(req.params.name)
      if (!file) {
        next('route')
        return
      }
      res.setHeader('Cache-Control', HASHED.test(req.params.name) ? 'public, max-age=31536000, immutable' : 'no-cache')
      send(req, res, file)
    })
    .all(onlyGet)
  // The script of the page interprets the rest of the path.
  router
    .route(['/dashboard', '/dashboard/', '/dashboard/o/*rest'])
    .get(named('/dashboard'), (req, res) => {
      if (!files) throw new ApiError('unavailable', 'the dashboard is not built: run sh embedded/install.sh')
      for (const [name, value] of Object.entries(PAGE_HEADERS)) res.setHeader(name, value)
      send(req, res, files.page)
    })
    .all(onlyGet)
  return router
}

function named(route: string): RequestHandler {
  return function named(req, _res, next) {
    contextOf(req).route = route
    next()
  }
}

function send(req: Request, res: Response, { type, plain, gzip }: DashboardFile): void {
  res.setHeader('Content-Type', type)
  res.setHeader('Vary', 'Accept-Encoding')
  const isPacked = req.acceptsEncodings('gzip') === 'gzip'
  if (isPacked) res.setHeader('Content-Encoding', 'gzip')
  res.end(isPacked ? gzip : plain)
}

/** Content-Security-Policy of the page: files and calls of this origin alone, no inline script or style, no markup made from strings. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const PAGE_HEADERS = {
  'Content-Security-Policy': PAGE_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}
