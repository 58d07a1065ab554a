import { apiTokenView, ApiTokenData, ApiTokenParams, findApiToken } from '../api-tokens.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'scopes' | 'apiTokens' | 'catchUp'>

/** `GET …/api-tokens/{id}`: the token as in lists, with the ETag for a conditional `DELETE`. */
export function getApiToken(deps: Deps): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/api-tokens/{id}`,
    on: LISTENERS,
    id: 'getApiToken',
    summary: 'Get one API token, without the token itself.',
    params: ApiTokenParams,
    replies: { 200: ApiTokenData },
    async handle({ principal, params: { id, ...slugs } }) {
      const { namespace } = await deps.scopes.ofPath(principal, slugs)
      await deps.scopes.require(principal, { verb: 'get', resource: 'apitokens', namespace })
      const object = await findApiToken(deps, namespace, id)
      return { status: 200, data: { apiToken: apiTokenView(object) }, etag: object.metadata.resourceVersion }
    },
  })
}
