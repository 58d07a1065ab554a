import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiTokenVerifier, apiTokenIndexes } from '../../apiserver/auth/api-token.ts'
import { AuthenticationError } from '../../apiserver/auth/authentication-error.ts'
import type { Principal } from '../../apiserver/route.ts'
import { tenancyRoutes } from '../../apiserver/routes/tenancy.ts'
import { createScopes } from '../../apiserver/scope.ts'
import { ApiToken } from '../../crds/api-token.ts'
import { ClusterRoleBinding, Namespace, RoleBinding } from '../../crds/core.ts'
import type { Kind } from '../../crds/kind.ts'
import { clusterRoleOf, PLATFORM_ADMIN_GROUP, PLATFORM_ADMIN_ROLE, roleGroup, ROLES } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { type CacheDeps, createCache } from '../../store/cache.ts'
import { createEmbeddedStore } from '../../store/embedded.ts'
import { isStoreError } from '../../store/errors.ts'
import { bindingIndexes, createRoleAccess } from '../../store/role-access.ts'
import { serveRoutes } from './toy-app.ts'

/** Users by token. Whoever is not listed is a user of that name without groups. */
const USERS: Readonly<Record<string, Principal>> = { root: { user: 'local:root', groups: [PLATFORM_ADMIN_GROUP] } }

/**
 * The routes of organizations, namespaces, members and API tokens over a real store and real roles. Users are told by name; `root` is
 * platform admin. In place of the operator, each new namespace gets its three RoleBindings here.
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
    roleBindings: run(RoleBinding, bindingIndexes),
    clusterRoleBindings: run(ClusterRoleBinding, bindingIndexes),
    apiTokens: run(ApiToken, apiTokenIndexes),
  }
  caches.namespaces.onChange(({ name }) => void bindRoles(name))

  async function bindRoles(namespace: string): Promise<void> {
    if (caches.namespaces.get({ name: namespace })?.metadata.deletionTimestamp !== undefined) return
    for (const role of ROLES) {
      const roleRef = { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: clusterRoleOf(role) }
      const subjects = [{ kind: 'Group' as const, name: roleGroup(namespace, role) }]
      await store.create(RoleBinding, { metadata: { name: `mooring-${role}`, namespace }, roleRef, subjects }).catch(ignoreRace)
    }
  }

  await store.create(ClusterRoleBinding, {
    metadata: { name: 'mooring-platform-admins' },
    roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: PLATFORM_ADMIN_ROLE },
    subjects: [{ kind: 'Group', name: PLATFORM_ADMIN_GROUP }],
  })
  await Promise.all(Object.values(caches).map((cache) => cache.synced()))
  await caches.clusterRoleBindings.waitFor({ name: 'mooring-platform-admins' }, (found) => found, AbortSignal.timeout(10_000))

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
 * {@link serveTenancy} with an organization `acme` and its namespace `prod`, whose admin, editor and viewer are called so; `eve` is
 * nobody there.
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

/** Two changes of a namespace may bind at once, and it may go meanwhile. */
function ignoreRace(error: unknown): void {
  if (!isStoreError(error, 'already_exists') && !isStoreError(error, 'not_found') && !isStoreError(error, 'forbidden'))
    throw error
}
