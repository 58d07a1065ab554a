import { type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { ExtensionsData, extensionViews } from '../instance-extensions.ts'
import { type AnyRoute, route } from '../../http/route.ts'

/** `GET /v1/instances/{id}/extensions`: the extensions that the instance's region allows. */
export function listExtensions(deps: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances/{id}/extensions',
    on: ['shared'],
    id: 'listExtensions',
    summary: 'List the extensions that the region allows for the engine, and which of them are installed.',
    params: InstanceParams,
    replies: { 200: ExtensionsData },
    async handle({ principal, params }) {
      return { status: 200, data: { extensions: await extensionViews(deps, await deps.find(principal, params.id)) } }
    },
  })
}
