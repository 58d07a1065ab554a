import { z } from 'zod'
import { isSlug, SLUG, SLUG_MAX, SLUG_RULE } from '../../crds/names.ts'
import type { Organization } from '../../crds/organization.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { ApiError } from '../http/errors.ts'
import { type CatchUp, createCatchUp } from '../resources/cache-waits.ts'
import { createdAtOf } from '../resources/timestamps.ts'
import { NO_CONTROLS, NO_CONTROLS_RULE } from '../http/query.ts'
import type { Principal } from '../http/route.ts'

/** Slug in a body. In a path, text that is not a slug is 404. */
export const Slug = z.string().max(SLUG_MAX).regex(SLUG, SLUG_RULE)

/** Display name. */
export const DisplayName = z.string().min(1).max(100).regex(NO_CONTROLS, NO_CONTROLS_RULE)

export const OrganizationView = z
  .object({ slug: z.string(), name: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Organization' })

export function organizationView({ metadata, spec }: Organization): z.output<typeof OrganizationView> {
  return { slug: metadata.name, name: spec.name, createdAt: createdAtOf(metadata) }
}

export interface OrganizationsDeps {
  readonly access: Access
  readonly organizations: Cache<typeof Organization>
  /** Absent where no other process creates organizations. */
  readonly catchUp?: CatchUp
}

/** Organizations that a caller may read: those with a namespace in which the caller has a role; all for a platform admin. */
export interface Organizations {
  visible(principal: Principal): Promise<readonly Organization[]>
  /** Finds an organization by its slug. @throws ApiError `not_found` when it does not exist or the caller may not read it */
  find(principal: Principal, slug: string): Promise<Organization>
}

export function createOrganizations({ access, organizations, catchUp = createCatchUp(0) }: OrganizationsDeps): Organizations {
  async function isVisible(principal: Principal): Promise<(organization: Organization) => boolean> {
    if (await access.may(principal, { verb: 'list', resource: 'organizations' })) return () => true
    const own = new Set((await access.memberships(principal)).map((membership) => membership.organization))
    return ({ metadata }) => own.has(metadata.name)
  }

  async function visible(principal: Principal): Promise<readonly Organization[]> {
    return organizations.list().filter(await isVisible(principal))
  }

  async function find(principal: Principal, slug: string): Promise<Organization> {
    const organization = isSlug(slug) ? await catchUp(organizations, () => organizations.get({ name: slug })) : undefined
    if (organization && (await isVisible(principal))(organization)) return organization
    throw new ApiError('not_found', `there is no organization ${slug}`)
  }

  return { visible, find }
}
