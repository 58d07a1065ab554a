import { z } from 'zod'
import type { Plan } from '../../crds/plan.ts'
import type { Cache } from '../../store/cache.ts'
import { billableItemsOf, BillableItemView, planView, PlanView } from './plans.ts'
import { enginesOf, EngineView } from './engines.ts'
import { type Regions, RegionView } from './regions.ts'
import { type AnyRoute, route } from '../http/route.ts'

const Metadata = z
  .object({
    engines: z.array(EngineView),
    regions: z.array(RegionView),
    plans: z.array(PlanView),
    billableItems: z.array(BillableItemView),
    addons: z.array(z.object({ id: z.string(), name: z.string(), engines: z.array(z.string()) })),
  })
  .meta({ id: 'CreateMetadata' })

export interface CreateMetadataDeps {
  readonly regions: Regions
  readonly plans: Cache<typeof Plan>
}

/** `GET /v1/databases/create/metadata`: engines, regions, plans and prices for a form that creates a dedicated database. Open to every caller. */
export function createMetadata({ regions, plans }: CreateMetadataDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/databases/create/metadata',
    on: ['dedicated'],
    id: 'getCreateMetadata',
    summary: 'Get the engines, regions, plans and prices of dedicated databases.',
    replies: { 200: z.object({ metadata: Metadata }) },
    async handle() {
      const views = regions.all().map(regions.view)
      const all = plans.list()
      const offers = { plans: all.map(planView), billableItems: billableItemsOf(all), addons: [] }
      return { status: 200, data: { metadata: { engines: enginesOf(views), regions: views, ...offers } } }
    },
  })
}
