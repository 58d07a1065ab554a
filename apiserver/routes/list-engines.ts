import { z } from 'zod'
import { enginesOf, EngineView } from '../engines.ts'
import type { Regions } from '../regions.ts'
import { type AnyRoute, route } from '../route.ts'

/** `GET /v1/engines`: for every caller. */
export function listEngines({ regions }: { readonly regions: Regions }): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/engines',
    on: ['dedicated'],
    id: 'listEngines',
    summary: 'List the engines that some region runs.',
    replies: { 200: z.object({ engines: z.array(EngineView) }) },
    async handle() {
      return { status: 200, data: { engines: enginesOf(regions.all().map(regions.view)) } }
    },
  })
}
