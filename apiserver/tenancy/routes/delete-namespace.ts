import { CUSTOM_KINDS } from '../../../crds/index.ts'
import { TenantNamespace } from '../../../crds/tenant-namespace.ts'
import { TunnelPassword } from '../../../crds/tunnel-password.ts'
import type { Store } from '../../../store/port.ts'
import { untilAny, untilGone } from '../../resources/cache-waits.ts'
import { deleteExpected } from '../../resources/delete-expected.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, NamespaceParams, Nothing, type TenancyDeps } from '../tenancy-deps.ts'
import { counted } from '../../resources/nouns.ts'

/** Returns the content of a namespace, one text such as `3 databases` per kind. Tunnel passwords are deleted with their tunnels. */
async function contentsOf(store: Store, namespace: string): Promise<readonly string[]> {
  const kinds = CUSTOM_KINDS.filter((kind) => kind.namespaced && kind.kind !== TunnelPassword.kind)
  const counts = await Promise.all(kinds.map(async (kind) => (await store.list(kind, { namespace })).items.length))
  return kinds.flatMap((kind, at) => {
    const count = counts[at] ?? 0
    return count > 0 ? [counted(count, kind)] : []
  })
}

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'tenantNamespaces' | 'namespaces' | 'audit'>

/** `DELETE /v1/organizations/{organization}/namespaces/{namespace}`: for platform admins; only an empty namespace. */
export function deleteNamespace({ store, scopes, tenantNamespaces, namespaces, audit }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: NAMESPACE_PATH,
    on: LISTENERS,
    id: 'deleteNamespace',
    summary: 'Delete an empty namespace (platform admin).',
    params: NamespaceParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const { namespace: name } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'delete', resource: 'tenantnamespaces' })
      const object = tenantNamespaces.get({ name })
      if (!object) throw new ApiError('not_found', 'the namespace was deleted just now')
      const contents = await contentsOf(store, name)
      if (contents.length > 0)
        throw new ApiError('conflict', `the namespace is not empty: ${contents.join(', ')}; delete them first`)
      await deleteExpected(store, TenantNamespace, object, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      await untilGone(tenantNamespaces, object)
      // The operator removes its finalizer once the Namespace is gone; this cache of Namespaces may be behind.
      await untilAny(namespaces, () => namespaces.get({ name }) === undefined)
      return { status: 200, data: {} }
    },
  })
}
