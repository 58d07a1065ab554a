import { z } from 'zod'
import type { Namespace } from '../../../crds/core.ts'
import type { Draft } from '../../../crds/kind.ts'
import { annotations, FINALIZER, namespaceName, roleGroup } from '../../../crds/names.ts'
import { TenantNamespace, TenantNamespaceReason } from '../../../crds/tenant-namespace.ts'
import { isReady } from '../../../store/conditions.ts'
import type { Store } from '../../../store/port.ts'
import { untilAny, untilReady } from '../../resources/cache-waits.ts'
import { createdNow } from '../../resources/created-at.ts'
import { ApiError } from '../../http/errors.ts'
import { createNamed } from '../../resources/create-named.ts'
import { requestHash } from '../../http/idempotency.ts'
import { areRolesBound } from '../members.ts'
import { NamespaceView, namespaceView } from '../namespace-view.ts'
import { DisplayName, Slug } from '../organizations.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'

const Body = z
  .object({ slug: Slug, name: DisplayName })
  .meta({ id: 'CreateNamespace', examples: [{ slug: 'staging', name: 'Staging' }] })

/** Returns the TenantNamespace for a body. Pure. */
function newNamespace(
  organization: string,
  { slug, name }: z.output<typeof Body>,
  { createdBy, now }: { readonly createdBy: string; readonly now: Date },
): Draft<typeof TenantNamespace> {
  return {
    metadata: {
      name: namespaceName(organization, slug),
      finalizers: [FINALIZER],
      annotations: { [annotations.createdBy]: createdBy, ...createdNow(now) },
    },
    spec: { organization, namespace: slug, displayName: name },
  }
}

/** Whether the Namespace is in the cache and not an earlier one of the same name that is being deleted. */
const isLive = (found: Namespace | undefined): boolean => found !== undefined && found.metadata.deletionTimestamp === undefined

/** Deletes a namespace that cannot be created, so that a rejected request leaves nothing. */
async function rollBack(store: Store, { metadata: { name, uid } }: TenantNamespace): Promise<void> {
  await store.delete(TenantNamespace, { name }, { uid })
}

/** `POST /v1/organizations/{organization}/namespaces`: for platform admins; answers once the roles of the namespace work. */
export function createNamespace(deps: TenancyDeps): AnyRoute {
  const { store, scopes, organizations, tenantNamespaces, namespaces, roleBindings, audit } = deps
  return route({
    method: 'post',
    path: `${ORGANIZATION_PATH}/namespaces`,
    on: LISTENERS,
    id: 'createNamespace',
    summary: 'Create a namespace (platform admin).',
    params: OrganizationParams,
    body: Body,
    idempotent: true,
    replies: { 201: z.object({ namespace: NamespaceView }) },
    async handle({ principal, params, body, idempotencyKey: key, requestId, sourceIp }) {
      const { metadata: organization } = await organizations.find(principal, params.organization)
      await scopes.require(principal, { verb: 'create', resource: 'tenantnamespaces' })
      const draft = newNamespace(organization.name, body, { createdBy: principal.user, now: deps.now() })
      const owner = { namespace: organization.name, user: principal.user, key }
      const about = { owner, hash: requestHash(body), what: 'namespace' }
      const { object, created } = await createNamed(store, TenantNamespace, draft, about)
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      const made = await untilReady(tenantNamespaces, object, [TenantNamespaceReason.NamespaceTaken])
      if (!isReady(made)) {
        await rollBack(store, made)
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: made })
        throw new ApiError(
          'conflict',
          `the cluster has a Namespace ${made.metadata.name} that is not Mooring's; choose another slug`,
        )
      }
      const { name: namespace, resourceVersion: etag } = made.metadata
      await untilAny(namespaces, () => isLive(namespaces.get({ name: namespace })))
      await untilAny(roleBindings, () => areRolesBound(roleBindings.list({ namespace }), (role) => roleGroup(namespace, role)))
      return { status: 201, data: { namespace: namespaceView(made, namespaces) }, etag }
    },
  })
}
