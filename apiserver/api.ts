import type { RequestListener } from 'node:http'
import { Router, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import { createApp, createRequestLimiters } from './http/app.ts'
import { createApiTokenVerifier, apiTokenIndexes } from './auth/api-token.ts'
import type { TokenIssuer } from './auth/issuer.ts'
import { createJwtVerifier } from './auth/jwt.ts'
import type { IssuerConfig } from './auth/trusted-issuers.ts'
import { createCatchUp } from './resources/cache-waits.ts'
import { createDocsRouter } from './openapi/docs-router.ts'
import { INSTANCE_LIMITS, type InstanceWiring } from './instances/instance-deps.ts'
import type { ApiLimits } from './http/rate-limit.ts'
import type { ApiMetrics } from './http/access-log.ts'
import { rejectUntilSynced, onlyGet } from './http/default-responses.ts'
import { openApiDocument } from './openapi/openapi.ts'
import { regionForExamples, withRegion } from './openapi/openapi-schemas.ts'
import { servedMotors } from './catalog/regions.ts'
import type { Listener, AnyRoute } from './http/route.ts'
import { createScopes } from './auth/scope.ts'
import type { Store } from '../store/port.ts'
import { createValueDigest } from '../journal/audit-entry.ts'
import { OWN_ISSUER } from '../crds/names.ts'
import { type Access, bindingIndexes } from '../store/access.ts'
import { createAudit } from './journal/audit.ts'
import type { Journal } from '../journal/port.ts'
import { type TunnelRoutesWiring, tunnelRoutes } from './tunnels/routes/tunnels.ts'
import type { TenancyWiring } from './tenancy/tenancy-deps.ts'
import { catalogRoutes, type CatalogWiring } from './catalog/catalog-routes.ts'
import { instanceRoutes } from './instances/routes/instances.ts'
import { tenancyRoutes } from './tenancy/tenancy.ts'
import { ApiToken } from '../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { Organization } from '../crds/organization.ts'
import { Plan } from '../crds/plan.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { TenantNamespace } from '../crds/tenant-namespace.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../crds/tunnel-password.ts'
import type { Cache, CacheDeps, CacheSet } from '../store/cache.ts'
import { tunnelLookupIndexes } from './tunnels/tunnel-lookup.ts'

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

/** Dependencies of all routes; `tunnels` is absent in an installation without edges. */
export type RoutesWiring = InstanceWiring & CatalogWiring & TenancyWiring & { readonly tunnels?: TunnelRoutesWiring | undefined }

/** Returns every route of the API, of both listeners. */
export function allRoutes(wiring: RoutesWiring): AnyRoute[] {
  const { tunnels } = wiring
  return [
    ...catalogRoutes(wiring),
    ...instanceRoutes(wiring),
    ...tenancyRoutes(wiring),
    ...(tunnels ? tunnelRoutes(tunnels) : []),
  ]
}

interface OpenRoutesDeps {
  /** Mooring's own issuer; its documents are published when present. */
  readonly issuer?: Pick<TokenIssuer, 'jwks' | 'discovery'> | undefined
  /** Whether requests can be served. */
  readonly isReady: () => boolean
}

/** Creates the routes without authentication: `/healthz`, `/readyz` and the issuer's discovery documents. */
export function createOpenRoutes({ issuer, isReady }: OpenRoutesDeps): Router {
  const router = Router({ caseSensitive: true, strict: true })
  const get = (path: string, handler: RequestHandler) => router.route(path).get(handler).all(onlyGet)
  get('/healthz', (_req, res) => void res.json({ status: 'ok' }))
  get('/readyz', (_req, res) => {
    const ready = isReady()
    if (!ready) res.setHeader('Retry-After', '1')
    res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'starting' })
  })
  if (issuer) {
    get('/.well-known/jwks.json', (_req, res) => void res.type('application/jwk-set+json').send(JSON.stringify(issuer.jwks)))
    get('/.well-known/openid-configuration', (_req, res) => void res.json(issuer.discovery))
  }
  return router
}

/** Caches of the API; the process may share them with other components. */
export interface ApiCaches {
  readonly organizations: Cache<typeof Organization>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  /** Cache with `bindingIndexes` (store/access.ts). */
  readonly roleBindings: Cache<typeof RoleBinding>
  /** Cache with `bindingIndexes` (store/access.ts). */
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  /** Cache with `apiTokenIndexes` (auth/api-token.ts). */
  readonly apiTokens: Cache<typeof ApiToken>
  readonly regions: Cache<typeof Region>
  readonly plans: Cache<typeof Plan>
  readonly instances: Cache<typeof SharedInstance>
}

/** Creates the caches of an API server. `instanceIndexes` are for components that share the caches; the API itself needs none. */
export function createApiCaches({ cached }: CacheSet, instanceIndexes?: CacheDeps<typeof SharedInstance>['indexes']): ApiCaches {
  return {
    organizations: cached(Organization),
    tenantNamespaces: cached(TenantNamespace),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding, bindingIndexes),
    clusterRoleBindings: cached(ClusterRoleBinding, bindingIndexes),
    apiTokens: cached(ApiToken, apiTokenIndexes),
    regions: cached(Region),
    plans: cached(Plan),
    instances: cached(SharedInstance, instanceIndexes),
  }
}

/** Creates the additional caches of the tunnel routes. */
export function createTunnelCaches({ cached }: CacheSet) {
  return {
    endpoints: cached(TunnelEndpoint),
    tunnels: cached(Tunnel, tunnelLookupIndexes),
    tunnelPasswords: cached(TunnelPassword),
  }
}
