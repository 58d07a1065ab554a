import type { RequestListener } from 'node:http'
import { Router } from 'express'
import type { Logger } from 'pino'
import { createApp, createRequestLimiters } from './http/app.ts'
import { createApiTokenVerifier } from './auth/api-token.ts'
import type { TokenIssuer } from './auth/issuer.ts'
import { createJwtVerifier, type IssuerConfig } from './auth/jwt.ts'
import { createCatchUp } from './resources/cache-waits.ts'
import { createDocsRouter } from './openapi/docs-router.ts'
import { INSTANCE_LIMITS } from './instances/instance-deps.ts'
import type { ApiLimits } from './http/rate-limit.ts'
import type { ApiMetrics } from './metrics.ts'
import { rejectUntilSynced } from './http/default-responses.ts'
import { createOpenRoutes } from './open-routes.ts'
import { openApiDocument } from './openapi/openapi.ts'
import { regionForExamples, withRegion } from './openapi/openapi-examples.ts'
import { servedMotors } from './catalog/regions.ts'
import type { Listener } from './http/route.ts'
import { allRoutes } from './routes.ts'
import { createScopes } from './auth/scope.ts'
import type { Store } from '../store/port.ts'
import { createValueDigest } from '../shared/audit-secrets.ts'
import { OWN_ISSUER } from '../crds/names.ts'
import type { Access } from '../store/access.ts'
import type { ApiCaches } from './resources/caches.ts'
import { createAudit } from './journal/audit.ts'
import type { Journal } from '../journal/port.ts'
import type { TunnelRoutesWiring } from './tunnels/routes/tunnels.ts'

export interface ApiDeps {
  readonly store: Store
  readonly access: Access
  readonly caches: ApiCaches
  /** Caches and journal of tunnels; absent in an installation without edges. */
  readonly tunnels?:
    (Pick<TunnelRoutesWiring, 'endpoints' | 'tunnels' | 'tunnelPasswords'> & { readonly journal: Journal }) | undefined
  /** Mooring's own issuer: what verifying its tokens needs. */
  readonly issuer: Pick<TokenIssuer, 'issuer' | 'jwks' | 'discovery'>
  /** External issuers. */
  readonly issuers: readonly IssuerConfig[]
  readonly tokenSecret: Uint8Array
  readonly limits: ApiLimits
  readonly metrics: ApiMetrics
  readonly log: Logger
  readonly isReady: () => boolean
  /** Whether the initial lists of all caches are complete; until then only the open routes are served. Always true when absent. */
  readonly isSynced?: () => boolean
  /** Maximum delay of the caches behind creations by other API servers, in milliseconds; 0 when absent. */
  readonly behindMs?: number
  /** Addresses or ranges of proxies whose `X-Forwarded-For` is trusted. None when absent. */
  readonly trustedProxies?: readonly string[] | undefined
}

/** Creates the request handlers of both listeners. */
export function createApi(deps: ApiDeps): Readonly<Record<Listener, RequestListener>> {
  const { store, access, caches, issuer, limits, isReady } = deps
  const catchUp = createCatchUp(deps.behindMs ?? 0)
  const scopes = createScopes({ access, namespaces: caches.namespaces, catchUp })
  const now = () => new Date()
  const audit =
    deps.tunnels &&
    createAudit({ journal: deps.tunnels.journal, log: deps.log, now, digest: createValueDigest(deps.tokenSecret) })
  const shared = { store, access, scopes, catchUp, tokenSecret: deps.tokenSecret, audit, now }
  const routes = allRoutes({
    ...caches,
    ...shared,
    tunnels: deps.tunnels && audit && { ...caches, ...shared, ...deps.tunnels, audit, tunnelsPerNamespace: limits.quotaTunnels },
    motorsOf: servedMotors,
    endpoints: deps.tunnels?.endpoints,
    instanceLimits: { ...INSTANCE_LIMITS, perNamespace: limits.quotaInstances },
    apiTokensPerNamespace: limits.quotaApiTokens,
  })
  const limiters = createRequestLimiters(limits)
  const own: IssuerConfig = { name: OWN_ISSUER, issuer: issuer.issuer, keys: { jwks: issuer.jwks }, own: true }
  const verifyJwt = createJwtVerifier({ issuers: [own, ...deps.issuers] })
  const verifyApiToken = createApiTokenVerifier({ ...caches, catchUp })

  function app(listener: Listener): RequestListener {
    const open = Router()
    open.use(createOpenRoutes({ issuer, isReady }))
    const document = openApiDocument(routes.filter(({ on }) => on.includes(listener)))
    open.use(createDocsRouter(() => withRegion(document, regionForExamples(caches.regions.list()))))
    open.use(rejectUntilSynced(deps.isSynced ?? (() => true)))
    return createApp({ ...deps, listener, routes, open, verifyJwt, verifyApiToken, limiters })
  }
  return { shared: app('shared'), dedicated: app('dedicated') }
}
