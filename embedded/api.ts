import type { RequestListener } from 'node:http'
import { Router } from 'express'
import type { Logger } from 'pino'
import { createApp, createRequestLimiters } from '../apiserver/app.ts'
import { createApiTokenVerifier } from '../apiserver/auth/api-token.ts'
import type { TokenIssuer } from '../apiserver/auth/issuer.ts'
import { createJwtVerifier, type IssuerConfig } from '../apiserver/auth/jwt.ts'
import { createDocsRouter } from '../apiserver/docs-router.ts'
import { INSTANCE_LIMITS } from '../apiserver/instance-deps.ts'
import type { ApiMetrics } from '../apiserver/metrics.ts'
import { createOpenRoutes } from '../apiserver/open-routes.ts'
import { openApiDocument } from '../apiserver/openapi.ts'
import { servedMotors } from '../apiserver/regions.ts'
import type { Listener } from '../apiserver/route.ts'
import { allRoutes } from '../apiserver/routes/index.ts'
import { createScopes } from '../apiserver/scope.ts'
import type { Store } from '../store/port.ts'
import { createRoleAccess } from '../store/role-access.ts'
import type { Caches } from './caches.ts'
import type { Settings } from './settings.ts'

export interface ApiDeps {
  readonly store: Store
  readonly caches: Caches
  readonly issuer: TokenIssuer
  /** Issuers beside our own. */
  readonly issuers: readonly IssuerConfig[]
  readonly tokenSecret: Uint8Array
  readonly settings: Settings
  readonly metrics: ApiMetrics
  readonly log: Logger
  readonly isReady: () => boolean
}

/** Name that users of the embedded issuer carry: `local:…`. */
const OWN_ISSUER = 'local'

/** The API of both listeners. */
export function createApi(deps: ApiDeps): Readonly<Record<Listener, RequestListener>> {
  const { store, caches, issuer, settings, isReady } = deps
  const access = createRoleAccess(caches)
  const scopes = createScopes({ access, namespaces: caches.namespaces })
  const routes = allRoutes({
    ...caches,
    ...{ store, access, scopes, tokenSecret: deps.tokenSecret },
    motorsOf: servedMotors,
    instanceLimits: { ...INSTANCE_LIMITS, perNamespace: settings.quotaInstances },
    apiTokensPerNamespace: settings.quotaApiTokens,
    now: () => new Date(),
  })
  const limiters = createRequestLimiters({
    reads: { perSecond: settings.readRate, burst: settings.readBurst },
    writes: { perSecond: settings.writeRate, burst: settings.writeBurst },
    failedAuthPerMinute: settings.failedAuthPerMinute,
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
