import { z } from 'zod'
import { engineKey, enginesOf, EngineView } from './engines.ts'
import { page, PageQuery } from '../http/paging.ts'
import type { Regions } from './regions.ts'
import { type AnyRoute, route } from '../http/route.ts'
import { listOf } from '../tenancy/tenancy-deps.ts'

/** `GET /v1/engines`: open to every caller. */
export function listEngines({ regions }: { readonly regions: Regions }): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/engines',
    on: ['dedicated'],
    id: 'listEngines',
    summary: 'List the engines that at least one region runs.',
    query: z.object(PageQuery),
    replies: { 200: listOf('engines', EngineView) },
    async handle({ query }) {
      const { items, nextCursor } = page(enginesOf(regions.all().map(regions.view)), query, engineKey)
      return { status: 200, data: { engines: items, nextCursor } }
    },
  })
}
