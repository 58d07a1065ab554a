import { z } from 'zod'
import { endInstance } from '../instance-end.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const NEEDS = [{ verb: 'delete', resource: 'sharedinstances' }] as const

/** `DELETE /v1/instances/{id}`: 200 once verified gone, 202 while in progress. A repeated request joins the wait. */
export function deleteInstance(deps: InstanceDeps): AnyRoute {
  return route({
    method: 'delete',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'deleteInstance',
    summary: 'Delete a database and its user permanently.',
    description: [
      '200 once database and user are verified gone. 202 with `state: "deleting"` when the deletion takes longer than 30 seconds;',
      'repeat the request to wait for its end.',
    ].join(' '),
    conditional: true,
    params: InstanceParams,
    replies: { 200: z.object({}), 202: InstanceData },
    async handle(request) {
      return endInstance(deps, await deps.find(request.principal, request.params.id, NEEDS), request)
    },
  })
}
