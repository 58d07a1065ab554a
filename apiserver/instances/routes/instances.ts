import { z } from 'zod'
import { createInstanceDeps, type InstanceWiring, InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { createExtension, listExtensions } from './extensions.ts'
import { createInstance } from './create-instance.ts'
import { deleteInstance, deleteInstanceByIdentifier } from './delete-instance.ts'
import { ensureInstance } from './ensure-instance.ts'
import { patchInstance, resetInstance, rotatePassword } from './change-instance.ts'
import { MOTORS } from '../../../crds/motor.ts'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { Identifier } from '../instance-body.ts'
import { InstanceView, instanceView } from '../instance-view.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { requireNotDeleting } from '../instance-lookup.ts'

/** Returns the routes of shared databases (docs/api.md, "Instances"). */
export function instanceRoutes(wiring: InstanceWiring): AnyRoute[] {
  const deps = createInstanceDeps(wiring)
  const routes = [
    ...[createInstance, listInstances, ensureInstance, deleteInstanceByIdentifier],
    ...[getInstance, patchInstance, rotatePassword, resetInstance, deleteInstance],
    ...[createExtension, listExtensions],
  ]
  return routes.map((make) => make(deps))
}

const ListQuery = z.object({
  ...PageQuery,
  identifier: Identifier.optional().describe('Only instances with exactly this identifier.'),
  region: z
    .uuid('must be the id (a UUID) of a region in GET /v1/regions')
    .optional()
    .describe('Only instances in the region with this id.'),
  motor: z.enum(MOTORS).optional().describe('Only instances of this motor.'),
})
type Filter = Pick<z.output<typeof ListQuery>, 'identifier' | 'region' | 'motor'>

/** Whether an instance matches every given filter. */
export function matches({ spec }: SharedInstance, { identifier, region, motor }: Filter): boolean {
  return (
    (identifier === undefined || spec.identifier === identifier) &&
    (region === undefined || spec.region === region.toLowerCase()) &&
    (motor === undefined || spec.motor === motor)
  )
}

/** `GET /v1/instances`: the instances of the home namespace, newest first. */
function listInstances({ scopes, instances, regions }: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances',
    on: ['shared'],
    id: 'listInstances',
    summary: 'List the databases of a namespace, without their credentials.',
    home: true,
    query: ListQuery,
    replies: { 200: z.object({ instances: z.array(InstanceView), nextCursor: z.string().nullable() }) },
    async handle(request) {
      const { namespace } = await scopes.home(request)
      await scopes.require(request.principal, { verb: 'list', resource: 'sharedinstances', namespace })
      const found = instances.list({ namespace }).filter((instance) => matches(instance, request.query))
      const { items, nextCursor } = page(found, request.query, resourceKey)
      const views = items.map((instance) => instanceView(instance, { region: regions.nameOf(instance.spec.region) }))
      return { status: 200, data: { instances: views, nextCursor } }
    },
  })
}

const GetQuery = z.object({
  include: z
    .literal('credentials')
    .optional()
    .describe('`credentials`: adds `password`, `uri` and `tls.ca`; for editors and admins.'),
})

const READS_CREDENTIALS = [{ verb: 'get', resource: 'secrets' }] as const

/**
 * `GET /v1/instances/{id}`: the instance without credentials, or with them on request (409 while it is being deleted). An instance that is being
 * deleted shows as disabled until it is gone.
 */
export function getInstance({ find, answer, audit }: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'getInstance',
    summary: 'Get one database, with its credentials on request.',
    description: [
      'Without `include=credentials`, `password`, `uri` and `tls.ca` are null. With it the caller needs the role editor or admin, and the read is',
      'recorded in the audit log (`action: read`). While the password is being replaced the answer waits, at most 25 seconds, then it is 503.',
    ].join(' '),
    params: InstanceParams,
    query: GetQuery,
    replies: { 200: InstanceData },
    async handle({ principal, params, query, requestId, sourceIp, arrivedAt }) {
      if (query.include === undefined) return answer.plain(200, await find(principal, params.id))
      const instance = await find(principal, params.id, READS_CREDENTIALS)
      requireNotDeleting(instance)
      const reply = await answer.withCredentials(200, instance, arrivedAt)
      await audit.record({ principal, requestId, sourceIp, action: 'read', after: instance })
      return reply
    },
  })
}
