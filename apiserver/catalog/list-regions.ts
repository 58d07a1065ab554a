import { z } from 'zod'
import { page, PageQuery, resourceKey } from '../http/paging.ts'
import { type Regions, RegionView } from './regions.ts'
import { type AnyRoute, route } from '../http/route.ts'

/** `GET /v1/regions`: open to every caller. */
export function listRegions({ regions }: { readonly regions: Regions }): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/regions',
    on: ['shared', 'dedicated'],
    id: 'listRegions',
    summary: 'List the regions and the engines that each runs.',
    query: z.object(PageQuery),
    replies: { 200: z.object({ regions: z.array(RegionView), nextCursor: z.string().nullable() }) },
    async handle({ query }) {
      const { items, nextCursor } = page(regions.all(), query, resourceKey)
      return { status: 200, data: { regions: items.map(regions.view), nextCursor } }
    },
  })
}
