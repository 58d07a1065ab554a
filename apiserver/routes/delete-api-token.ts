import { z } from 'zod'
import { ApiToken } from '../../crds/api-token.ts'
import { untilGone } from '../cache-waits.ts'
import { ApiError } from '../errors.ts'
import { type AnyRoute, LISTENERS, route } from '../route.ts'
import { NAMESPACE_PATH, NamespaceParams, Nothing, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'apiTokens' | 'audit' | 'catchUp'>

/** `DELETE …/api-tokens/{id}`: from the answer on the token is not valid here. */
export function deleteApiToken({ store, scopes, apiTokens, audit, catchUp }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: `${NAMESPACE_PATH}/api-tokens/{id}`,
    on: LISTENERS,
    id: 'deleteApiToken',
    summary: 'Revoke an API token.',
    params: z.object({ ...NamespaceParams.shape, id: z.string().describe('Id of the API token.') }),
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params: { id, ...slugs }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'delete', resource: 'apitokens', namespace })
      const object = await catchUp(apiTokens, () => apiTokens.byUid(id.toLowerCase()))
      if (object?.metadata.namespace !== namespace) throw new ApiError('not_found', 'there is no such API token')
      await store.delete(ApiToken, object.metadata, { uid: object.metadata.uid, resourceVersion: ifMatch })
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      await untilGone(apiTokens, object)
      return { status: 200, data: {} }
    },
  })
}
