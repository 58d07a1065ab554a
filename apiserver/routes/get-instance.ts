import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, route } from '../route.ts'

/** `GET /v1/instances/{id}`: as in the list. One that is being deleted is there, and disabled, until it is gone. */
export function getInstance({ find, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'getInstance',
    summary: 'Get one database, without its credentials.',
    params: InstanceParams,
    replies: { 200: InstanceData },
    async handle({ principal, params }) {
      return answer.plain(200, await find(principal, params.id))
    },
  })
}
