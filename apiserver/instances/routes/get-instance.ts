import { z } from 'zod'
import { InstanceData, type InstanceDeps, InstanceParams } from '../instance-deps.ts'
import { requireNotDeleting } from '../instance-lookup.ts'
import { type AnyRoute, route } from '../../http/route.ts'

const Query = z.object({
  include: z
    .literal('credentials')
    .optional()
    .describe('`credentials`: adds `password`, `uri` and `tls.ca`; for editors and admins.'),
})

const READS_CREDENTIALS = [{ verb: 'get', resource: 'secrets' }] as const

/** `GET /v1/instances/{id}`: the instance as in lists, or with its credentials. An instance that is being deleted shows as disabled until it is gone. */
export function getInstance({ find, answer, audit }: InstanceDeps): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/instances/{id}',
    on: ['shared'],
    id: 'getInstance',
    summary: 'Get one database, with its credentials on request.',
    description: [
      'Without `include=credentials`, `password`, `uri` and `tls.ca` are null. With it the caller needs the role editor or admin, and the read is',
      'recorded in the audit log (`action: read`).',
    ].join(' '),
    params: InstanceParams,
    query: Query,
    replies: { 200: InstanceData },
    async handle({ principal, params, query, requestId, sourceIp }) {
      if (query.include === undefined) return answer.plain(200, await find(principal, params.id))
      const instance = await find(principal, params.id, READS_CREDENTIALS)
      requireNotDeleting(instance)
      const reply = await answer.withCredentials(200, instance)
      await audit.record({ principal, requestId, sourceIp, action: 'read', after: instance })
      return reply
    },
  })
}
