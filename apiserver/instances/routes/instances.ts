import { z } from 'zod'
import { createInstanceDeps, type InstanceWiring, type InstanceDeps } from '../instance-deps.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { createExtension, listExtensions } from './extensions.ts'
import { createInstance } from './create-instance.ts'
import { deleteInstance, deleteInstanceByIdentifier } from './delete-instance.ts'
import { ensureInstance } from './ensure-instance.ts'
import { getInstance, getInstanceByIdentifier } from './get-instance.ts'
import { patchInstance, resetInstance, rotatePassword } from './change-instance.ts'
import { MOTORS } from '../../../crds/motor.ts'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { Identifier } from '../instance-body.ts'
import { InstanceView, instanceView } from '../instance-view.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'

/** Returns the routes of shared databases (docs/api.md, "Instances"). */
export function instanceRoutes(wiring: InstanceWiring): AnyRoute[] {
  const deps = createInstanceDeps(wiring)
  const routes = [
    ...[createInstance, listInstances, getInstanceByIdentifier, ensureInstance, deleteInstanceByIdentifier],
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
