import { z } from 'zod'
import { SharedInstance } from '../../crds/shared-instance.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, route } from '../route.ts'

const NEEDS = [{ verb: 'delete', resource: 'sharedinstances' }] as const

/** Records the wish. False: somebody had asked before, or it has gone meanwhile, which is what was wanted. @throws StoreError `conflict` for `resourceVersion` */
async function requestDeletion(
  store: Store,
  { metadata }: SharedInstance,
  resourceVersion: string | undefined,
): Promise<boolean> {
  if (metadata.deletionTimestamp !== undefined && resourceVersion === undefined) return false
  try {
    await store.delete(SharedInstance, metadata, { uid: metadata.uid, resourceVersion })
    return metadata.deletionTimestamp === undefined
  } catch (error) {
    if (isStoreError(error, 'not_found') || (isStoreError(error, 'conflict') && resourceVersion === undefined)) return false
    throw error
  }
}

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
      const isOurs = await requestDeletion(store, instance, ifMatch)
      const recorded = isOurs && audit.record({ principal, requestId, sourceIp, action: 'delete', before: instance })
      const gone = await waits.gone(instance, arrivedAt)
      await recorded
      if (gone) return { status: 200, data: {} }
      const { data, ...reply } = answer.plain(202, instance)
      return { ...reply, data: { instance: { ...data.instance, isEnabled: false, state: 'deleting' as const } } }
    },
  })
}
