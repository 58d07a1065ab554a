import { z } from 'zod'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { requestDeletion } from '../delete-expected.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, route } from '../route.ts'

const NEEDS = [{ verb: 'delete', resource: 'sharedinstances' }] as const

/** `DELETE /v1/instances/{id}`: 200 when verified gone, 202 when it goes on. A second one joins the wait. */
export function deleteInstance({ store, audit, find, waits, answer }: InstanceDeps): AnyRoute {
  return route({
    method: 'delete',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'deleteInstance',
    summary: 'Delete a database and its user for good.',
    description: [
      '200 once database and user are verified gone. Still under way after 30 seconds: 202 with `state: "deleting"`;',
      'the same request again waits on.',
    ].join(' '),
    conditional: true,
    params: InstanceParams,
    replies: { 200: z.object({}), 202: InstanceData },
    async handle({ principal, params, ifMatch, arrivedAt, requestId, sourceIp }) {
      const instance = await find(principal, params.id, NEEDS)
      const isOurs = await requestDeletion(store, SharedInstance, instance, ifMatch)
      const recorded = isOurs && audit.record({ principal, requestId, sourceIp, action: 'delete', before: instance })
      const gone = await waits.gone(instance, arrivedAt)
      await recorded
      if (gone) return { status: 200, data: {} }
      const { data, ...reply } = answer.plain(202, instance)
      return { ...reply, data: { instance: { ...data.instance, isEnabled: false, state: 'deleting' as const } } }
    },
  })
}
