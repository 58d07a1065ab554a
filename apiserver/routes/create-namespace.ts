import { z } from 'zod'
import { Namespace } from '../../crds/core.ts'
import type { Draft } from '../../crds/kind.ts'
import { annotations, labels, namespaceName, roleGroup } from '../../crds/names.ts'
import { untilAny, untilKnown } from '../cache-waits.ts'
import { createNamed } from '../create-named.ts'
import { requestHash } from '../idempotency.ts'
import { areRolesBound } from '../members.ts'
import { NamespaceView, namespaceView } from '../namespace-view.ts'
import { DisplayName, Slug } from '../organizations.ts'
import { type AnyRoute, LISTENERS, route } from '../route.ts'
import { ORGANIZATION_PATH, OrganizationParams, type TenancyDeps } from '../tenancy-deps.ts'

const Body = z.object({ slug: Slug, name: DisplayName })

/** Pure. */
function newNamespace(organization: string, { slug, name }: z.output<typeof Body>, createdBy: string): Draft<typeof Namespace> {
  return {
    metadata: {
      name: namespaceName(organization, slug),
      labels: { [labels.organization]: organization, [labels.namespace]: slug },
      annotations: { [annotations.displayName]: name, [annotations.createdBy]: createdBy },
    },
  }
}

/** `POST /v1/organizations/{organization}/namespaces`: a platform admin's; answers when roles can be had in it. */
export function createNamespace({ store, scopes, organizations, namespaces, roleBindings }: TenancyDeps): AnyRoute {
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
    async handle({ principal, params, body, idempotencyKey: key }) {
      const { metadata: organization } = await organizations.find(principal, params.organization)
      await scopes.require(principal, { verb: 'create', resource: 'namespaces' })
      const draft = newNamespace(organization.name, body, principal.user)
      const owner = { namespace: organization.name, user: principal.user, key }
      const object = await createNamed(store, Namespace, draft, { owner, hash: requestHash(body) })
      const { name: namespace, resourceVersion: etag } = object.metadata
      await untilKnown(namespaces, object)
      await untilAny(roleBindings, () => areRolesBound(roleBindings.list({ namespace }), (role) => roleGroup(namespace, role)))
      return { status: 201, data: { namespace: namespaceView(object) }, etag }
    },
  })
}
