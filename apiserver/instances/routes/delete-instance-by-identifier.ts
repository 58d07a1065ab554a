import { z } from 'zod'
import { requireExpected } from '../../http/if-match.ts'
import { endInstance } from '../instance-end.ts'
import { InstanceData, type InstanceDeps } from '../instance-deps.ts'
import { BY_IDENTIFIER_PATH, ByIdentifierParams, findByIdentifier } from '../instances-by-identifier.ts'
import { type AnyRoute, route } from '../../http/route.ts'

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
