import { z } from 'zod'
import { annotations, FINALIZER, labels, namespaceName, roleGroup } from '../../crds/names.ts'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../http/route.ts'
import {
  listOf,
  NAMESPACE_PATH,
  NamespaceParams,
  Nothing,
  ORGANIZATION_PATH,
  OrganizationParams,
  type TenancyDeps,
  DisplayName,
  Slug,
} from './tenancy-deps.ts'
import { ApiError } from '../http/errors.ts'
import { NamespaceQuota } from './namespace-quota.ts'
import type { Namespace } from '../../crds/core.ts'
import type { Draft } from '../../crds/kind.ts'
import { TenantNamespace, TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import { isReady } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import { untilAny, untilGone, untilReady } from '../resources/cache-waits.ts'
import { createdAtOf, createdNow, deleteFirst, withMilliseconds, counted } from '../resources/names-and-times.ts'
import { createNamed, requestHash } from '../resources/creations.ts'
import { areRolesBound } from './members.ts'
import { CUSTOM_KINDS } from '../../crds/index.ts'
import { TunnelPassword } from '../../crds/tunnel-password.ts'
import { TunnelWebhook } from '../../crds/tunnel-webhook.ts'
import { deleteExpected } from '../resources/conditional-writes.ts'
import type { Cache } from '../../store/cache.ts'

/** `GET /v1/organizations/{organization}/namespaces`: namespaces in which the caller has a role; all for a platform admin. */
export function listNamespaces({ access, organizations, tenantNamespaces, namespaces }: TenancyDeps): AnyRoute {
  return route({
    method: 'get',
    path: `${ORGANIZATION_PATH}/namespaces`,
    on: LISTENERS,
    id: 'listNamespaces',
    summary: 'List the namespaces of an organization in which you have a role.',
    params: OrganizationParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('namespaces', NamespaceView) },
    async handle({ principal, params, query }) {
      const { metadata } = await organizations.find(principal, params.organization)
      // A TenantNamespace without its Namespace, or with a Namespace of another owner, is not found under its path either.
      const exists = (name: string) => namespaces.get({ name })?.metadata.labels?.[labels.organization] === metadata.name
      const all = tenantNamespaces.list().filter((each) => each.spec.organization === metadata.name && exists(each.metadata.name))
      const seesAll = await access.may(principal, { verb: 'list', resource: 'tenantnamespaces' })
      const memberships = seesAll ? [] : await access.memberships(principal)
      const own = new Set(memberships.filter((m) => m.organization === metadata.name).map((m) => m.namespace))
      const visible = seesAll ? all : all.filter(({ spec }) => own.has(spec.namespace))
      const { items, nextCursor } = page(visible, query, resourceKey)
      return { status: 200, data: { namespaces: items.map((item) => namespaceView(item, namespaces)), nextCursor } }
    },
  })
}

type GetDeps = Pick<TenancyDeps, 'scopes' | 'tenantNamespaces' | 'namespaces' | 'quotaOf'>

/** `GET /v1/organizations/{organization}/namespaces/{namespace}` */
export function getNamespace({ scopes, tenantNamespaces, namespaces, quotaOf }: GetDeps): AnyRoute {
  return route({
    method: 'get',
    path: NAMESPACE_PATH,
    on: LISTENERS,
    id: 'getNamespace',
    summary: 'Get one namespace, with its quota.',
    params: NamespaceParams,
    replies: { 200: z.object({ namespace: z.object({ ...NamespaceView.shape, quota: NamespaceQuota }) }) },
    async handle({ principal, params }) {
      const { namespace: name } = await scopes.ofPath(principal, params)
      const object = tenantNamespaces.get({ name })
      if (!object) throw new ApiError('not_found', 'the namespace was deleted just now')
      const namespace = { ...namespaceView(object, namespaces), quota: quotaOf(name) }
      return { status: 200, data: { namespace }, etag: object.metadata.resourceVersion }
    },
  })
}

const CreateBody = z
  .object({ slug: Slug, name: DisplayName })
  .meta({ id: 'CreateNamespace', examples: [{ slug: 'staging', name: 'Staging' }] })

/** Returns the TenantNamespace for a body. Pure. */
function newNamespace(
  organization: string,
  { slug, name }: z.output<typeof CreateBody>,
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
    body: CreateBody,
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

/** Kinds whose objects are deleted with their tunnel, by Kubernetes a moment later. */
const PARTS_OF_TUNNELS: readonly string[] = [TunnelPassword.kind, TunnelWebhook.kind]

/** Returns the content of a namespace, one text such as `3 databases` per kind, without the parts of tunnels. */
async function contentsOf(store: Store, namespace: string): Promise<{ readonly total: number; readonly text: string }> {
  const kinds = CUSTOM_KINDS.filter((kind) => kind.namespaced && !PARTS_OF_TUNNELS.includes(kind.kind))
  const counts = await Promise.all(kinds.map(async (kind) => (await store.list(kind, { namespace })).items.length))
  const texts = kinds.flatMap((kind, at) => {
    const count = counts[at] ?? 0
    return count > 0 ? [counted(count, kind)] : []
  })
  return { total: counts.reduce((sum, count) => sum + count, 0), text: texts.join(', ') }
}

type DeleteDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'tenantNamespaces' | 'namespaces' | 'audit'>

/** `DELETE /v1/organizations/{organization}/namespaces/{namespace}`: for platform admins; only an empty namespace. */
export function deleteNamespace({ store, scopes, tenantNamespaces, namespaces, audit }: DeleteDeps): AnyRoute {
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
      if (contents.total > 0)
        throw new ApiError('conflict', `the namespace is not empty: ${contents.text}; ${deleteFirst(contents.total)}`)
      await deleteExpected(store, TenantNamespace, object, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      await untilGone(tenantNamespaces, object)
      // The operator removes its finalizer once the Namespace is gone; this cache of Namespaces may be behind.
      await untilAny(namespaces, () => namespaces.get({ name }) === undefined)
      return { status: 200, data: {} }
    },
  })
}

const NamespaceView = z
  .object({ slug: z.string(), name: z.string(), organization: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Namespace' })

/**
 * Renders a namespace. Without a display name (possible with kubectl) the name is the slug. An adopted namespace has the creation time of its
 * Namespace object.
 */
function namespaceView(
  { metadata, spec }: TenantNamespace,
  namespaces: Pick<Cache<typeof Namespace>, 'get'>,
): z.output<typeof NamespaceView> {
  const { organization, namespace: slug, displayName: name = slug } = spec
  const made = namespaces.get({ name: metadata.name })?.metadata.creationTimestamp
  const adopted = made !== undefined && made < metadata.creationTimestamp
  return { slug, name, organization, createdAt: adopted ? withMilliseconds(made) : createdAtOf(metadata) }
}
