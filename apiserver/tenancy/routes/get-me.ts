import { z } from 'zod'
import { ROLES } from '../../../crds/names.ts'
import { type AnyRoute, LISTENERS, route } from '../../http/route.ts'
import type { TenancyDeps } from '../tenancy-deps.ts'

const Me = z
  .object({
    user: z.string(),
    groups: z.array(z.string()),
    namespaces: z.array(z.object({ organization: z.string(), namespace: z.string(), role: z.enum(ROLES) })),
  })
  .meta({ id: 'Me' })

/** `GET /v1/me`: user name, groups and roles of the caller. */
export function getMe({ access }: Pick<TenancyDeps, 'access'>): AnyRoute {
  return route({
    method: 'get',
    path: '/v1/me',
    on: LISTENERS,
    id: 'getMe',
    summary: 'Get your user name, your groups and your role in each namespace.',
    replies: { 200: Me },
    async handle({ principal }) {
      const memberships = await access.memberships(principal)
      const namespaces = memberships.map(({ organization, namespace, role }) => ({ organization, namespace, role }))
      return { status: 200, data: { user: principal.user, groups: principal.groups, namespaces } }
    },
  })
}
