import { z } from 'zod'
import type { ApiToken } from '../../crds/api-token.ts'
import type { Namespace, RoleBinding } from '../../crds/core.ts'
import { SLUG, SLUG_MAX, isSlug, SLUG_RULE } from '../../crds/names.ts'
import type { Organization } from '../../crds/organization.ts'
import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { type Audit, noAudit } from '../journal/audit.ts'
import { DEFAULT_LIMITS } from '../http/rate-limit.ts'
import { createNamespaceQuota, type NamespaceQuotaDeps } from './namespace-quota.ts'
import { type CatchUp, createCatchUp } from '../resources/cache-waits.ts'
import { EXAMPLE } from '../openapi/openapi-schemas.ts'
import { createCreationQuota, type Quota } from '../resources/creations.ts'
import type { Scopes } from '../auth/scope.ts'
import { ApiError } from '../http/errors.ts'
import { NO_CONTROLS, NO_CONTROLS_RULE } from '../http/request-parser.ts'
import type { Principal } from '../http/route.ts'

/** Dependencies that the process provides. */
export interface TenancyWiring extends NamespaceQuotaDeps {
  readonly store: Store
  readonly access: Access
  readonly scopes: Scopes
  readonly organizations: Cache<typeof Organization>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  /** Cache with `apiTokenIndexes` (auth/api-token.ts). */
  readonly apiTokens: Cache<typeof ApiToken>
  /** Secret of the installation, at least 32 random bytes, from which API tokens of requests with an Idempotency-Key are derived. */
  readonly tokenSecret: Uint8Array
  readonly now?: () => Date
  /** Absent in an installation without a journal. */
  readonly audit?: Audit | undefined
  /** Absent where no other process creates resources. */
  readonly catchUp?: CatchUp
}

/** Dependencies of the routes of organizations, namespaces, members and API tokens. */
export interface TenancyDeps extends Omit<TenancyWiring, 'organizations' | Exclude<keyof NamespaceQuotaDeps, 'apiTokens'>> {
  readonly organizations: Organizations
  readonly organizationCache: Cache<typeof Organization>
  readonly apiTokenQuota: Quota
  readonly quotaOf: ReturnType<typeof createNamespaceQuota>
  readonly now: () => Date
  readonly audit: Audit
  readonly catchUp: CatchUp
}

export function createTenancyDeps(wiring: TenancyWiring): TenancyDeps {
  const {
    organizations,
    quotas: { quotaApiTokens: max } = DEFAULT_LIMITS,
    now = () => new Date(),
    audit = noAudit,
    catchUp = createCatchUp(0),
    ...rest
  } = wiring
  return {
    ...rest,
    now,
    audit,
    catchUp,
    organizations: createOrganizations(wiring),
    organizationCache: organizations,
    apiTokenQuota: createCreationQuota({ cache: wiring.apiTokens, max, what: 'API tokens (expired ones count)' }),
    quotaOf: createNamespaceQuota(wiring),
  }
}

/** Path parameter with a slug. The pattern is only for the OpenAPI document: other text is 404, not 400. */
const slugParam = (about: string, example: string) =>
  z
    .string()
    .describe(about)
    .meta({ pattern: SLUG.source, maxLength: SLUG_MAX, examples: [example] })
/** Path parameter with an id. The format is only for the OpenAPI document: other text is 404, not 400. */
export const idParam = (about: string) => z.string().describe(about).meta({ format: 'uuid' })

export const OrganizationParams = z.object({ organization: slugParam('Slug of the organization.', EXAMPLE.organization) })
export const NamespaceParams = z.object({
  ...OrganizationParams.shape,
  namespace: slugParam('Slug of the namespace.', EXAMPLE.namespace),
})

export const ORGANIZATION_PATH = '/v1/organizations/{organization}'
export const NAMESPACE_PATH = `${ORGANIZATION_PATH}/namespaces/{namespace}`
/** Schema of the data in the answer to a deletion. */
export const Nothing = z.object({})
/** Returns the schema of the data of a list. */
export const listOf = <N extends string, V extends z.ZodType>(plural: N, view: V) =>
  z.object({ [plural]: z.array(view), nextCursor: z.string().nullable() })

/** Slug in a body. In a path, text that is not a slug is 404. */
export const Slug = z.string().max(SLUG_MAX).regex(SLUG, SLUG_RULE)

/** Display name. */
export const DisplayName = z.string().min(1).max(100).regex(NO_CONTROLS, NO_CONTROLS_RULE)

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
