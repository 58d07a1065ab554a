import { z } from 'zod'
import { DisplayName, Slug, listOf, Nothing, ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from './tenancy-deps.ts'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../http/route.ts'
import { annotations, labels } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import { untilGone, untilReady } from '../resources/cache-waits.ts'
import { counted, createdAtOf, createdNow, deleteFirst } from '../resources/names-and-times.ts'
import { createNamed, requestHash } from '../resources/creations.ts'
import { Namespace } from '../../crds/core.ts'
import { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Store } from '../../store/port.ts'
import { deleteExpected } from '../resources/conditional-writes.ts'
import { ApiError } from '../http/errors.ts'

const OrganizationView = z
  .object({ slug: z.string(), name: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Organization' })

function organizationView({ metadata, spec }: Organization): z.output<typeof OrganizationView> {
  return { slug: metadata.name, name: spec.name, createdAt: createdAtOf(metadata) }
}

/** `GET /v1/organizations`: organizations with a namespace in which the caller has a role; all for a platform admin. */
export function listOrganizations({ organizations }: Pick<TenancyDeps, 'organizations'>): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/organizations',
    on: LISTENERS,
    id: 'listOrganizations',
    summary: 'List the organizations in which you have a role.',
    query: z.object(PageQuery),
    replies: { 200: listOf('organizations', OrganizationView) },
    async handle({ principal, query }) {
      const { items, nextCursor } = page(await organizations.visible(principal), query, resourceKey)
      return { status: 200, data: { organizations: items.map(organizationView), nextCursor } }
    },
  })
}

/** `GET /v1/organizations/{organization}` */
export function getOrganization({ organizations }: Pick<TenancyDeps, 'organizations'>): AnyRoute {
  return route({
    method: 'get',
    path: ORGANIZATION_PATH,
    on: LISTENERS,
    id: 'getOrganization',
    summary: 'Get one organization.',
    params: OrganizationParams,
    replies: { 200: z.object({ organization: OrganizationView }) },
    async handle({ principal, params }) {
      const organization = await organizations.find(principal, params.organization)
      const etag = organization.metadata.resourceVersion
      return { status: 200, data: { organization: organizationView(organization) }, etag }
    },
  })
}

type CreateDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'organizationCache' | 'audit' | 'now'>

/** `POST /v1/organizations`: for platform admins. */
export function createOrganization({ store, scopes, organizationCache, audit, now }: CreateDeps): AnyRoute {
  return route({
    method: 'post',
    path: '/v1/organizations',
    on: LISTENERS,
    id: 'createOrganization',
    summary: 'Create an organization (platform admin).',
    body: z
      .object({ slug: Slug, name: DisplayName })
      .meta({ id: 'CreateOrganization', examples: [{ slug: 'acme', name: 'Acme Ltd' }] }),
    idempotent: true,
    replies: { 201: z.object({ organization: OrganizationView }) },
    async handle({ principal, body, idempotencyKey: key, requestId, sourceIp }) {
      await scopes.require(principal, { verb: 'create', resource: 'organizations' })
      const draft = {
        metadata: { name: body.slug, annotations: { [annotations.createdBy]: principal.user, ...createdNow(now()) } },
        spec: { name: body.name },
      }
      const owner = { namespace: '', user: principal.user, key }
      const { object, created } = await createNamed(store, Organization, draft, { owner, hash: requestHash(body) })
      if (created) await audit.record({ principal, requestId, sourceIp, action: 'create', after: object })
      const organization = await untilReady(organizationCache, object)
      const etag = organization.metadata.resourceVersion
      return { status: 201, data: { organization: organizationView(organization) }, etag }
    },
  })
}

/** Returns the names of an organization's namespaces: TenantNamespaces (desired) and Namespaces (existing). */
async function namespacesOf(store: Store, organization: string): Promise<ReadonlySet<string>> {
  const [desired, existing] = await Promise.all([
    store.list(TenantNamespace),
    store.list(Namespace, { labels: { [labels.organization]: organization } }),
  ])
  const own = desired.items.filter(({ spec }) => spec.organization === organization)
  return new Set([...own, ...existing.items].map(({ metadata }) => metadata.name))
}

type DeleteDeps = Pick<TenancyDeps, 'store' | 'scopes' | 'organizations' | 'organizationCache' | 'audit'>

/** `DELETE /v1/organizations/{organization}`: for platform admins; only an organization without namespaces. */
export function deleteOrganization({ store, scopes, organizations, organizationCache, audit }: DeleteDeps): AnyRoute {
  return route({
    method: 'delete',
    path: ORGANIZATION_PATH,
    on: LISTENERS,
    id: 'deleteOrganization',
    summary: 'Delete an organization that has no namespaces (platform admin).',
    params: OrganizationParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params, ifMatch, requestId, sourceIp }) {
      const organization = await organizations.find(principal, params.organization)
      await scopes.require(principal, { verb: 'delete', resource: 'organizations' })
      const { name } = organization.metadata
      const count = (await namespacesOf(store, name)).size
      if (count > 0)
        throw new ApiError('conflict', `organization ${name} still has ${counted(count, TenantNamespace)}; ${deleteFirst(count)}`)
      await deleteExpected(store, Organization, organization, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: organization })
      await untilGone(organizationCache, organization)
      return { status: 200, data: {} }
    },
  })
}
