import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect } from 'vitest'
import { createApiTokenVerifier, apiTokenIndexes } from '../../../apiserver/auth/api-token.ts'
import { AuthenticationError } from '../../../apiserver/auth/authenticate.ts'
import type { Principal } from '../../../apiserver/http/route.ts'
import { tenancyRoutes } from '../../../apiserver/tenancy/tenancy.ts'
import { createScopes } from '../../../apiserver/auth/scope.ts'
import { ApiToken } from '../../../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../../../crds/core.ts'
import type { Kind } from '../../../crds/kind.ts'
import { PLATFORM_ADMIN_GROUP, PLATFORM_ADMIN_ROLE, ROLES } from '../../../crds/names.ts'
import { Organization } from '../../../crds/organization.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import { createCatalogReconciler } from '../../../operator/catalog/controllers.ts'
import { apiTokenDecision, organizationDecision } from '../../../operator/catalog/decisions.ts'
import { createNamespaceReconciler } from '../../../operator/namespace/reconciler.ts'
import { namespaceWatches } from '../../../operator/namespace/watches.ts'
import { createReporter } from '../../../operator/reporter.ts'
import { createController } from '../../../operator/runtime/controller.ts'
import { objectsOf } from '../../../operator/runtime/source.ts'
import { type Cache, type CacheDeps, createCache, createCacheSet } from '../../../store/cache.ts'
import { createEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/port.ts'
import { bindingIndexes, createRoleAccess } from '../../../store/access.ts'
import { serveRoutes } from './http-app.ts'
import {
  createTunnelDeps,
  type TunnelDeps,
  TUNNELS_PER_NAMESPACE,
  type TunnelWiring,
} from '../../../apiserver/tunnels/tunnel-deps.ts'
import { Region } from '../../../crds/region.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import { patient } from '../patience.ts'

/** Users by token. An unlisted token stands for a user of that name without groups. */
const USERS: Readonly<Record<string, Principal>> = { root: { user: 'local:root', groups: [PLATFORM_ADMIN_GROUP] } }

/**
 * Serves the routes of organizations, namespaces, members and API tokens over a real store and real roles. A token is the name of
 * a user; `root` is platform admin. The reconcilers of organizations and namespaces run too.
 */
export async function serveTenancy(options: { readonly now?: () => Date } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'mooring-tenancy-'))
  const store = await createEmbeddedStore({ path: join(directory, 'state.db') })
  const stop = new AbortController()
  const runs: Promise<void>[] = []

  function run<K extends Kind>(kind: K, indexes: CacheDeps<K>['indexes'] = {}) {
    const cache = createCache({ store, kind, indexes })
    runs.push(cache.run(stop.signal))
    return cache
  }
  const caches = {
    organizations: run(Organization),
    namespaces: run(Namespace),
    tenantNamespaces: run(TenantNamespace),
    instances: run(SharedInstance),
    roleBindings: run(RoleBinding, bindingIndexes),
    clusterRoleBindings: run(ClusterRoleBinding, bindingIndexes),
    apiTokens: run(ApiToken, apiTokenIndexes),
  }
  runs.push(reconcile(store, caches, stop.signal))

  await store.create(ClusterRoleBinding, {
    metadata: { name: 'mooring-platform-admins' },
    roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: PLATFORM_ADMIN_ROLE },
    subjects: [{ kind: 'Group', name: PLATFORM_ADMIN_GROUP }],
  })
  await Promise.all(Object.values(caches).map((cache) => cache.synced()))
  await caches.clusterRoleBindings.waitFor(
    { name: 'mooring-platform-admins' },
    (found) => found,
    AbortSignal.timeout(patient(60_000)),
  )

  const access = createRoleAccess(caches)
  const scopes = createScopes({ access, namespaces: caches.namespaces })
  const tokenSecret = new Uint8Array(32).fill(1)
  const app = await serveRoutes(tenancyRoutes({ store, access, scopes, tokenSecret, ...caches, ...options }), {
    verifyApiToken: createApiTokenVerifier(caches),
    verifyJwt: async (token) => {
      if (token === 'bad') throw new AuthenticationError('invalid')
      return USERS[token] ?? { user: `local:${token}`, groups: [] }
    },
  })

  async function dispose(): Promise<void> {
    await app[Symbol.asyncDispose]()
    stop.abort()
    await Promise.all(runs)
    await store.close()
    await rm(directory, { recursive: true })
  }
  return { ...app, store, scopes, access, ...caches, [Symbol.asyncDispose]: dispose }
}

/**
 * Runs {@link serveTenancy} with an organization `acme` and its namespace `prod`. The users `admin`, `editor` and `viewer` have
 * these roles in it; `eve` has none.
 */
export async function serveAcme(options?: Parameters<typeof serveTenancy>[0]): Promise<Awaited<ReturnType<typeof serveTenancy>>> {
  const app = await serveTenancy(options)
  const token = 'root'
  const namespaces = '/v1/organizations/acme/namespaces'
  await app.call('POST', '/v1/organizations', { token, body: { slug: 'acme', name: 'Acme' } })
  await app.call('POST', namespaces, { token, body: { slug: 'prod', name: 'Production' } })
  for (const role of ROLES) await app.call('PUT', `${namespaces}/prod/members/local:${role}`, { token, body: { role } })
  return app
}

type Reconciled = Parameters<typeof namespaceWatches>[0] & { readonly apiTokens: Cache<typeof ApiToken> }

/** Runs the reconcilers of organizations and namespaces. */
async function reconcile(store: Store, caches: Reconciled, signal: AbortSignal): Promise<void> {
  const about = { report: createReporter({ store, now: () => new Date() }) }
  const common = { concurrency: 2, log: pino({ level: 'silent' }) }
  const namespaces = createController({
    ...{ ...common, name: 'namespace', sources: namespaceWatches(caches) },
    reconcile: createNamespaceReconciler({ ...caches, ...about, store, serviceAccounts: false }),
  })
  const organizations = createController({
    ...{ ...common, name: 'organization', sources: [objectsOf(caches.organizations)] },
    reconcile: createCatalogReconciler({ ...about, cache: caches.organizations, decide: organizationDecision }),
  })
  const apiTokens = createController({
    ...{ ...common, name: 'api-token', sources: [objectsOf(caches.apiTokens)] },
    reconcile: createCatalogReconciler({
      ...about,
      cache: caches.apiTokens,
      decide: (token) => apiTokenDecision(token, Date.now()),
    }),
  })
  await Promise.all([namespaces, organizations, apiTokens].map((controller) => controller.run(signal)))
}

type Given = Pick<TunnelWiring, 'store' | 'scopes' | 'journal' | 'audit'>

/**
 * Opens the dependencies of the routes of tunnels. The caches are synced with the store, and follow it until the stack is
 * disposed.
 */
export async function openTunnelDeps(opened: AsyncDisposableStack, given: Given): Promise<TunnelDeps> {
  const set = createCacheSet({ store: given.store, onError: (error) => expect.fail(String(error)) })
  const [regions, endpoints] = [set.cached(Region), set.cached(TunnelEndpoint)]
  const [tunnels, tunnelPasswords] = [set.cached(Tunnel), set.cached(TunnelPassword)]
  const stop = new AbortController()
  const running = set.run(stop.signal)
  opened.defer(async () => {
    stop.abort()
    await running
  })
  await set.synced()
  const settings = { tokenSecret: new Uint8Array(32), tunnelsPerNamespace: TUNNELS_PER_NAMESPACE, now: () => new Date() }
  return createTunnelDeps({ ...given, ...settings, regions, endpoints, tunnels, tunnelPasswords })
}
