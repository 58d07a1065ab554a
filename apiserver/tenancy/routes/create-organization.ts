import { z } from 'zod'
import { annotations } from '../../../crds/names.ts'
import { Organization } from '../../../crds/organization.ts'
import { untilReady } from '../../resources/cache-waits.ts'
import { createdNow } from '../../resources/created-at.ts'
import { createNamed } from '../../resources/create-named.ts'
import { requestHash } from '../../http/idempotency.ts'
import { DisplayName, OrganizationView, organizationView, Slug } from '../organizations.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import type { TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'organizationCache' | 'audit' | 'now'>

/** `POST /v1/organizations`: for platform admins. */
export function createOrganization({ store, scopes, organizationCache, audit, now }: Deps): AnyRoute {
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
