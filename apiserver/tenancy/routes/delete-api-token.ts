import { ApiToken } from '../../../crds/api-token.ts'
import { ApiTokenParams, findApiToken } from '../api-tokens.ts'
import { untilGone } from '../../resources/cache-waits.ts'
import { deleteExpected } from '../../resources/delete-expected.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, Nothing, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'store' | 'scopes' | 'apiTokens' | 'audit' | 'catchUp'>

/** `DELETE …/api-tokens/{id}`: the token is invalid on this server when the answer is sent. */
export function deleteApiToken({ store, scopes, apiTokens, audit, catchUp }: Deps): AnyRoute {
  return route({
    method: 'delete',
    path: `${NAMESPACE_PATH}/api-tokens/{id}`,
    on: LISTENERS,
    id: 'deleteApiToken',
    summary: 'Revoke an API token.',
    params: ApiTokenParams,
    conditional: true,
    replies: { 200: Nothing },
    async handle({ principal, params: { id, ...slugs }, ifMatch, requestId, sourceIp }) {
      const { namespace } = await scopes.ofPath(principal, slugs)
      await scopes.require(principal, { verb: 'delete', resource: 'apitokens', namespace })
      const object = await findApiToken({ apiTokens, catchUp }, namespace, id)
      await deleteExpected(store, ApiToken, object, ifMatch)
      await audit.record({ principal, requestId, sourceIp, action: 'delete', before: object })
      await untilGone(apiTokens, object)
      return { status: 200, data: {} }
    },
  })
}
