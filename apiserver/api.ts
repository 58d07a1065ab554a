import type { RequestListener } from 'node:http'
import { Router } from 'express'
import type { Logger } from 'pino'
import { createApp, createRequestLimiters } from './app.ts'
import { createApiTokenVerifier } from './auth/api-token.ts'
import type { TokenIssuer } from './auth/issuer.ts'
import { createJwtVerifier, type IssuerConfig } from './auth/jwt.ts'
import { createDocsRouter } from './docs-router.ts'
import { INSTANCE_LIMITS } from './instance-deps.ts'
import type { ApiMetrics } from './metrics.ts'
import { createOpenRoutes } from './open-routes.ts'
import { openApiDocument } from './openapi.ts'
import { servedMotors } from './regions.ts'
import type { Listener } from './route.ts'
import { allRoutes } from './routes/index.ts'
import { createScopes } from './scope.ts'
import type { Store } from '../store/port.ts'
import type { Access } from '../store/access.ts'
import type { ApiCaches } from './caches.ts'

export interface ApiDeps {
  readonly store: Store
  readonly access: Access
  readonly caches: ApiCaches
  /** Mooring's own issuer, as far as its tokens are checked by it. */
  readonly issuer: Pick<TokenIssuer, 'issuer' | 'jwks' | 'discovery'>
  /** Issuers beside our own. */
  readonly issuers: readonly IssuerConfig[]
  readonly tokenSecret: Uint8Array
  readonly limits: ApiLimits
  readonly metrics: ApiMetrics
  readonly log: Logger
  readonly isReady: () => boolean
  /** Addresses or ranges of proxies whose `X-Forwarded-For` is believed. None when absent. */
  readonly trustedProxies?: readonly string[] | undefined
}

/** Limits of surface, section 2: a principal's rates, a namespace's quotas. */
export interface ApiLimits {
  /** A second. */
  readonly readRate: number
  readonly readBurst: number
  readonly writeRate: number
  readonly writeBurst: number
  /** Of one source. */
  readonly failedAuthPerMinute: number
  readonly quotaInstances: number
  readonly quotaApiTokens: number
}

/** Name that users of the own issuer carry: `local:…`. */
const OWN_ISSUER = 'local'

/** The API of both listeners. */
export function createApi(deps: ApiDeps): Readonly<Record<Listener, RequestListener>> {
  const { store, access, caches, issuer, limits, isReady } = deps
  const scopes = createScopes({ access, namespaces: caches.namespaces })
  const routes = allRoutes({
    ...caches,
    ...{ store, access, scopes, tokenSecret: deps.tokenSecret },
    motorsOf: servedMotors,
    instanceLimits: { ...INSTANCE_LIMITS, perNamespace: limits.quotaInstances },
    apiTokensPerNamespace: limits.quotaApiTokens,
    now: () => new Date(),
  })
  const limiters = createRequestLimiters({
    reads: { perSecond: limits.readRate, burst: limits.readBurst },
    writes: { perSecond: limits.writeRate, burst: limits.writeBurst },
    failedAuthPerMinute: limits.failedAuthPerMinute,
  })
  const own: IssuerConfig = { name: OWN_ISSUER, issuer: issuer.issuer, keys: { jwks: issuer.jwks }, own: true }
  const verifyJwt = createJwtVerifier({ issuers: [own, ...deps.issuers] })
  const verifyApiToken = createApiTokenVerifier(caches)

  function app(listener: Listener): RequestListener {
    const open = Router()
    open.use(createOpenRoutes({ issuer, isReady }))
    open.use(createDocsRouter(openApiDocument(routes.filter(({ on }) => on.includes(listener)))))
    return createApp({ ...deps, listener, routes, open, verifyJwt, verifyApiToken, limiters })
  }
  return { shared: app('shared'), dedicated: app('dedicated') }
}
