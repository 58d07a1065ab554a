import { SharedInstance } from '../../crds/shared-instance.ts'
import { requestDeletion } from '../resources/delete-expected.ts'
import type { InstanceDeps } from './instance-deps.ts'
import type { Reply, RouteRequest } from '../http/route.ts'

type Request = Pick<RouteRequest, 'principal' | 'ifMatch' | 'arrivedAt' | 'requestId' | 'sourceIp'>

/**
 * Deletes an instance or joins a running deletion: 200 once database and user are verified gone, 202 when the time budget is used up first.
 * @throws ApiError, StoreError `conflict` at a version that the caller does not expect
 */
export async function endInstance(
  { store, audit, waits, answer }: Pick<InstanceDeps, 'store' | 'audit' | 'waits' | 'answer'>,
  instance: SharedInstance,
  { principal, ifMatch, arrivedAt, requestId, sourceIp }: Request,
): Promise<Reply> {
  const isFirst = await requestDeletion(store, SharedInstance, instance, ifMatch)
  const recorded = isFirst && audit.record({ principal, requestId, sourceIp, action: 'delete', before: instance })
  const gone = await waits.gone(instance, arrivedAt)
  await recorded
  if (gone) return { status: 200, data: {} }
  const { data, ...reply } = answer.plain(202, instance)
  return { ...reply, data: { instance: { ...data.instance, isEnabled: false, state: 'deleting' as const } } }
}
