import type { RequestListener } from 'node:http'
import { Router, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import { createApp, createRequestLimiters } from './http/app.ts'
import { createApiTokenVerifier, apiTokenIndexes } from './auth/api-token.ts'
import type { TokenIssuer } from './auth/issuer.ts'
import { createJwtVerifier } from './auth/jwt.ts'
import type { IssuerConfig } from './auth/trusted-issuers.ts'
import { createCatchUp } from './resources/cache-waits.ts'
import { createDashboard } from './dashboard/dashboard.ts'
import { readDashboard } from './dashboard/dashboard-files.ts'
import { createDashboardSessions } from './dashboard/session.ts'
import { createSignedOut } from './dashboard/signed-out.ts'
import { createDocsRouter } from './openapi/docs-router.ts'
import { INSTANCE_LIMITS, type InstanceWiring } from './instances/instance-deps.ts'
import type { ApiLimits } from './http/rate-limit.ts'
import type { ApiMetrics } from './http/access-log.ts'
import { rejectUntilSynced, onlyGet } from './http/default-responses.ts'
import { openApiDocument } from './openapi/openapi.ts'
import { createServedDocument } from './openapi/served-document.ts'
import { servedMotors } from './catalog/regions.ts'
import type { Listener, AnyRoute } from './http/route.ts'
import { createScopes } from './auth/scope.ts'
import type { Store } from '../store/port.ts'
import { createValueDigest } from '../journal/audit-entry.ts'
import { OWN_ISSUER } from '../crds/names.ts'
import { type Access, bindingIndexes } from '../store/access.ts'
import { createAudit } from './journal/audit.ts'
import type { Journal } from '../journal/port.ts'
import type { DatabaseJournal } from '../journal/databases.ts'
import type { WebhookJournal } from '../journal/webhooks.ts'
import { type TunnelRoutesWiring, tunnelRoutes } from './tunnels/routes/tunnels.ts'
import type { TenancyWiring } from './tenancy/tenancy-deps.ts'
import { catalogRoutes, type CatalogWiring } from './catalog/catalog-routes.ts'
import { databaseRoutes } from './databases/routes/databases.ts'
import type { DatabaseWiring } from './databases/database-deps.ts'
import { instanceRoutes } from './instances/routes/instances.ts'
import { tenancyRoutes } from './tenancy/tenancy.ts'
import { ApiToken } from '../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { DatabaseArchive } from '../crds/database-archive.ts'
import { DedicatedDatabase } from '../crds/dedicated-database.ts'
import { Organization } from '../crds/organization.ts'
import { Plan } from '../crds/plan.ts'
import { Region } from '../crds/region.ts'
import { SharedInstance } from '../crds/shared-instance.ts'
import { createRestoreGrants } from '../shared/restore-grants.ts'
import { TenantNamespace } from '../crds/tenant-namespace.ts'
import { Tunnel } from '../crds/tunnel.ts'
import { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../crds/tunnel-password.ts'
import { TunnelWebhook } from '../crds/tunnel-webhook.ts'
import type { Cache, CacheDeps, CacheSet } from '../store/cache.ts'
import { tunnelLookupIndexes } from './tunnels/tunnel-lookup.ts'

export interface ApiDeps {
  readonly store: Store
  readonly access: Access
  readonly caches: ApiCaches
  /** Caches and journal of tunnels; absent in an installation without edges. */
  readonly tunnels?:
    | (Pick<TunnelRoutesWiring, 'endpoints' | 'tunnels' | 'tunnelPasswords' | 'tunnelWebhooks' | 'addressGuard'> & {
        readonly journal: Journal & WebhookJournal & DatabaseJournal
      })
    | undefined
  /** Explains how the installation comes to serve a motor (catalog/regions.ts). */
  readonly motorAdvice?: InstanceWiring['motorAdvice']
  /** Mooring's own issuer: what verifying its tokens needs. */
  readonly issuer: Pick<TokenIssuer, 'issuer' | 'jwks' | 'discovery'>
  /** External issuers. */
  readonly issuers: readonly IssuerConfig[]
  readonly tokenSecret: Uint8Array
  /** Whether the installation has a repository of backups. */
  readonly backups?: boolean | undefined
  readonly withoutBackups?: DatabaseWiring['withoutBackups']
  /** Exchanges the code of a link to the dashboard for a token, once. Absent in an installation without such links. */
  readonly redeemCode?: ((code: string) => Promise<string | undefined>) | undefined
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
    motorAdvice: deps.motorAdvice,
    withoutBackups: deps.withoutBackups,
    restoreGrants: deps.backups ? createRestoreGrants(deps.tokenSecret) : undefined,
    endpoints: deps.tunnels?.endpoints,
    records: deps.tunnels?.journal.databases,
    instanceLimits: { ...INSTANCE_LIMITS, perNamespace: limits.quotaInstances },
    databasesPerNamespace: limits.quotaDatabases,
    quotas: limits,
  })
  const limiters = createRequestLimiters(limits)
  const own: IssuerConfig = { name: OWN_ISSUER, issuer: issuer.issuer, keys: { jwks: issuer.jwks }, own: true }
  const verifyJwt = createJwtVerifier({ issuers: [own, ...deps.issuers] })
  const verifyApiToken = createApiTokenVerifier({ ...caches, catchUp })

  const { countFailure } = limiters
  const sessions = createDashboardSessions({ secret: deps.tokenSecret, signedOut: createSignedOut({ store, now }), now })
  const dashboard = createDashboard({
    files: readDashboard(),
    sessions,
    redeemCode: deps.redeemCode,
    verifyJwt,
    verifyApiToken,
    countFailure,
  })

  function app(listener: Listener): RequestListener {
    const open = Router()
    open.use(createOpenRoutes({ issuer, isReady }))
    const document = openApiDocument(routes.filter(({ on }) => on.includes(listener)))
    open.use(createDocsRouter(createServedDocument(document, () => caches.regions.list())))
    open.use(rejectUntilSynced(deps.isSynced ?? (() => true)))
    if (listener === 'shared') open.use(dashboard)
    return createApp({ ...deps, listener, routes, open, verifyJwt, verifyApiToken, limiters })
  }
  return { shared: app('shared'), dedicated: app('dedicated') }
}

/** Dependencies of all routes; `tunnels` is absent in an installation without edges. */
export type RoutesWiring = InstanceWiring &
  DatabaseWiring &
  CatalogWiring &
  TenancyWiring & { readonly tunnels?: TunnelRoutesWiring | undefined }

/** Returns every route of the API, of both listeners. */
export function allRoutes(wiring: RoutesWiring): AnyRoute[] {
  const { tunnels } = wiring
  return [
    ...catalogRoutes(wiring),
    ...instanceRoutes(wiring),
    ...databaseRoutes(wiring),
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
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly archives: Cache<typeof DatabaseArchive>
}

/** Indexes for components that share the caches; the API itself needs none. */
export interface SharedIndexes {
  readonly instances?: CacheDeps<typeof SharedInstance>['indexes']
  readonly databases?: CacheDeps<typeof DedicatedDatabase>['indexes']
}

/** Creates the caches of an API server. */
export function createApiCaches({ cached }: CacheSet, indexes: SharedIndexes = {}): ApiCaches {
  return {
    organizations: cached(Organization),
    tenantNamespaces: cached(TenantNamespace),
    namespaces: cached(Namespace),
    roleBindings: cached(RoleBinding, bindingIndexes),
    clusterRoleBindings: cached(ClusterRoleBinding, bindingIndexes),
    apiTokens: cached(ApiToken, apiTokenIndexes),
    regions: cached(Region),
    plans: cached(Plan),
    instances: cached(SharedInstance, indexes.instances),
    databases: cached(DedicatedDatabase, indexes.databases),
    archives: cached(DatabaseArchive),
  }
}

/** Creates the additional caches of the tunnel routes. */
export function createTunnelCaches({ cached }: CacheSet) {
  return {
    endpoints: cached(TunnelEndpoint),
    tunnels: cached(Tunnel, tunnelLookupIndexes),
    tunnelPasswords: cached(TunnelPassword),
    tunnelWebhooks: cached(TunnelWebhook),
  }
}
