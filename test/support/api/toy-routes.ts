import { z } from 'zod'
import { type AnyRoute, type Reply, route, type RouteRequest } from '../../../apiserver/http/route.ts'

const Toy = z.object({ name: z.string(), size: z.int().optional(), tags: z.array(z.object({ key: z.string() })).optional() })
/** Listeners of a route on the shared listener. */
export const on = ['shared'] as const
export const ok = { 200: z.object({}) }

/** Responds with its input. */
const echo = async ({ params, query, body, idempotencyKey, ifMatch, namespaceHeader }: RouteRequest): Promise<Reply> => ({
  status: 200,
  data: { params, query, body, idempotencyKey, ifMatch, namespaceHeader },
  etag: '42',
})

/** Routes of each kind, which respond with their input. */
export const toys: readonly AnyRoute[] = [
  route({
    ...{ method: 'get', path: '/v1/toys', on, id: 'listToys', summary: '', replies: ok, handle: echo },
    query: z.object({ color: z.string().optional() }),
  }),
  route({
    ...{ method: 'post', path: '/v1/toys', on, id: 'createToy', summary: '', replies: ok, handle: echo },
    body: Toy,
    idempotent: true,
  }),
  route({
    ...{ method: 'patch', path: '/v1/toys/{id}', on, id: 'patchToy', summary: '', replies: ok, handle: echo },
    params: z.object({ id: z.string() }),
    body: Toy.partial(),
  }),
  route({
    ...{ method: 'post', path: '/v1/toys/{id}/wash', on, id: 'washToy', summary: '', replies: ok, handle: echo },
    params: z.object({ id: z.string() }),
  }),
  route({ method: 'get', path: '/v1/elsewhere', on: ['dedicated'], id: 'elsewhere', summary: '', replies: ok, handle: echo }),
]
