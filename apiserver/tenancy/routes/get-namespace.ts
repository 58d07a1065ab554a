import { z } from 'zod'
import { ApiError } from '../../http/errors.ts'
import { NamespaceView, namespaceView } from '../namespace-view.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import { NAMESPACE_PATH, NamespaceParams, type TenancyDeps } from '../tenancy-deps.ts'

type Deps = Pick<TenancyDeps, 'scopes' | 'tenantNamespaces' | 'namespaces'>

/** `GET /v1/organizations/{organization}/namespaces/{namespace}` */
export function getNamespace({ scopes, tenantNamespaces, namespaces }: Deps): AnyRoute {
  return route({
    method: 'get',
    path: NAMESPACE_PATH,
    on: LISTENERS,
    id: 'getNamespace',
    summary: 'Get one namespace.',
    params: NamespaceParams,
    replies: { 200: z.object({ namespace: NamespaceView }) },
    async handle({ principal, params }) {
      const { namespace: name } = await scopes.ofPath(principal, params)
      const object = tenantNamespaces.get({ name })
      if (!object) throw new ApiError('not_found', 'the namespace was deleted just now')
      return { status: 200, data: { namespace: namespaceView(object, namespaces) }, etag: object.metadata.resourceVersion }
    },
  })
}
