import { z } from 'zod'
import { ApiTokenView, apiTokenView } from '../api-tokens.ts'
import { page, PageQuery, resourceKey } from '../../http/paging.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { listOf, NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

/** `GET …/api-tokens`: without the tokens, which are not stored. */
export function listApiTokens({ scopes, apiTokens }: Pick<TenancyDeps, 'scopes' | 'apiTokens'>): AnyRoute {
  return route({
    method: 'get',
    path: `${NAMESPACE_PATH}/api-tokens`,
    on: LISTENERS,
    id: 'listApiTokens',
    summary: 'List the API tokens of a namespace.',
    params: NamespaceParams,
    query: z.object(PageQuery),
    replies: { 200: listOf('apiTokens', ApiTokenView) },
    async handle({ principal, params, query }) {
      const { namespace } = await scopes.ofPath(principal, params)
      await scopes.require(principal, { verb: 'list', resource: 'apitokens', namespace })
      const { items, nextCursor } = page(apiTokens.list({ namespace }), query, resourceKey)
      return { status: 200, data: { apiTokens: items.map(apiTokenView), nextCursor } }
    },
  })
}
