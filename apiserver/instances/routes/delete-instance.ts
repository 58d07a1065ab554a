import { z } from 'zod'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'
import { requireExpected, requestDeletion } from '../../resources/conditional-writes.ts'
import { BY_IDENTIFIER_PATH, ByIdentifierParams, findByIdentifier } from '../instance-lookup.ts'
import { SharedInstance } from '../../../crds/shared-instance.ts'

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

/** `DELETE /v1/instances/by-identifier/{identifier}`: 200 once no database has the identifier, even if none had it before. */
export function deleteInstanceByIdentifier(deps: InstanceDeps): AnyRoute {
  const { store, scopes } = deps
  return route({
    method: 'delete',
    path: BY_IDENTIFIER_PATH,
    on: ['shared'],
    id: 'deleteInstanceByIdentifier',
    summary: 'Delete the database of an identifier permanently, if it exists.',
    description:
      '200 once no database has the identifier, even if none had it before. 202 and 409 as for `DELETE /v1/instances/{id}`; 409 when several databases have the identifier.',
    conditional: true,
    home: true,
    params: ByIdentifierParams,
    replies: { 200: z.object({}), 202: InstanceData },
    async handle(request) {
      const { principal, params, ifMatch } = request
      const { namespace } = await scopes.home(request)
      await scopes.require(principal, { verb: 'delete', resource: 'sharedinstances', namespace })
      const { live, deleting } = await findByIdentifier(store, namespace, params.identifier)
      const all = live ? [live, ...deleting] : deleting
      if (all.length === 0) requireExpected(undefined, ifMatch)
      for (const instance of all) {
        const reply = await endInstance(deps, instance, request)
        if (reply.status === 202) return reply
      }
      return { status: 200, data: {} }
    },
  })
}

type Request = Pick<RouteRequest, 'principal' | 'ifMatch' | 'arrivedAt' | 'requestId' | 'sourceIp'>

/**
 * Deletes an instance or joins a running deletion: 200 once database and user are verified gone, 202 when the time budget is used up first.
 * @throws ApiError, StoreError `conflict` at a version that the caller does not expect
 */
async function endInstance(
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
