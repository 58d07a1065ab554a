import { z } from 'zod'
import type { SharedInstance } from '../../../crds/shared-instance.ts'
import { ApiError } from '../../http/errors.ts'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../http/route.ts'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { BY_IDENTIFIER_PATH, ByIdentifierParams, findByIdentifier, requireNotDeleting } from '../instance-lookup.ts'

const GetQuery = z.object({
  include: z
    .literal('credentials')
    .optional()
    .describe('`credentials`: adds `password`, `uri` and `tls.ca`; for editors and admins.'),
})

const READS_CREDENTIALS = { verb: 'get', resource: 'secrets' } as const

const DESCRIPTION = [
  'Without `include=credentials`, `password`, `uri` and `tls.ca` are null. With it the caller needs the role editor or admin, and the read is',
  'recorded in the audit log (`action: read`). While the password is being replaced the answer waits, at most 25 seconds, then it is 503.',
].join(' ')

/**
 * `GET /v1/instances/{id}`: the instance without credentials, or with them on request (409 while it is being deleted). An instance that is being
 * deleted shows as disabled until it is gone.
 */
export function getInstance(deps: InstanceDeps): AnyRoute {
  const { find, answer } = deps
  return route({
    method: 'get',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'getInstance',
    summary: 'Get one database, with its credentials on request.',
    description: DESCRIPTION,
    params: InstanceParams,
    query: GetQuery,
    replies: { 200: InstanceData },
    async handle(request) {
      const { principal, params, query } = request
      if (query.include === undefined) return answer.plain(200, await find(principal, params.id))
      return replyWithCredentials(deps, await find(principal, params.id, [READS_CREDENTIALS]), request)
    },
  })
}

/** `GET /v1/instances/by-identifier/{identifier}`: as by id; 409 when several databases have the identifier. */
export function getInstanceByIdentifier(deps: InstanceDeps): AnyRoute {
  const { store, scopes, answer } = deps
  return route({
    method: 'get',
    path: BY_IDENTIFIER_PATH,
    on: ['shared'],
    id: 'getInstanceByIdentifier',
    summary: 'Get the database of an identifier, with its credentials on request.',
    description: `${DESCRIPTION} 404 when no database has the identifier, 409 when several have it. Changes nothing, unlike PUT.`,
    home: true,
    params: ByIdentifierParams,
    query: GetQuery,
    replies: { 200: InstanceData },
    async handle(request) {
      const { principal, params, query } = request
      const { namespace } = await scopes.home(request)
      await scopes.require(principal, { verb: 'get', resource: 'sharedinstances', namespace })
      if (query.include !== undefined) await scopes.require(principal, { ...READS_CREDENTIALS, namespace })
      const { live, deleting } = await findByIdentifier(store, namespace, params.identifier)
      const instance = live ?? deleting[0]
      if (!instance) throw new ApiError('not_found', `no database has the identifier ${params.identifier}`)
      return query.include === undefined ? answer.plain(200, instance) : replyWithCredentials(deps, instance, request)
    },
  })
}

type Request = Pick<RouteRequest, 'principal' | 'requestId' | 'sourceIp' | 'arrivedAt'>

/** Answers with the credentials, and records the read. @throws ApiError `conflict` while the instance is being deleted */
async function replyWithCredentials(
  { answer, audit }: Pick<InstanceDeps, 'answer' | 'audit'>,
  instance: SharedInstance,
  { principal, requestId, sourceIp, arrivedAt }: Request,
): Promise<Reply> {
  requireNotDeleting(instance)
  const reply = await answer.withCredentials(200, instance, arrivedAt)
  await audit.record({ principal, requestId, sourceIp, action: 'read', after: instance })
  return reply
}
