import { z } from 'zod'
import type { ApiToken } from '../../crds/api-token.ts'
import type { Namespace, RoleBinding } from '../../crds/core.ts'
import { SLUG, SLUG_MAX } from '../../crds/names.ts'
import type { Organization } from '../../crds/organization.ts'
import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Access } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import type { Store } from '../../store/port.ts'
import { type Audit, noAudit } from '../journal/audit.ts'
import { DEFAULT_LIMITS } from '../http/limits.ts'
import { type CatchUp, createCatchUp } from '../resources/catch-up.ts'
import { EXAMPLE } from '../openapi/openapi-examples.ts'
import { createOrganizations, type Organizations } from './organizations.ts'
import { createQuota, type Quota } from '../resources/quota.ts'
import type { Scopes } from '../auth/scope.ts'

/** What the wiring hands in. */
export interface TenancyWiring {
  readonly store: Store
  readonly access: Access
  readonly scopes: Scopes
  readonly organizations: Cache<typeof Organization>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  /** With `apiTokenIndexes` (auth/api-token.ts). */
  readonly apiTokens: Cache<typeof ApiToken>
  /** Of the installation, at least 32 random bytes: API tokens made with an Idempotency-Key are derived from it. */
  readonly tokenSecret: Uint8Array
  /** Most API tokens in a namespace, unless the default holds. */
  readonly apiTokensPerNamespace?: number
  readonly now?: () => Date
  /** Absent where there is no journal. */
  readonly audit?: Audit | undefined
  /** None where this process alone creates. */
  readonly catchUp?: CatchUp
}

/** What the routes of organizations, namespaces, members and API tokens work with. */
export interface TenancyDeps extends Omit<TenancyWiring, 'organizations' | 'apiTokensPerNamespace'> {
  readonly organizations: Organizations
  readonly organizationCache: Cache<typeof Organization>
  readonly apiTokenQuota: Quota
  readonly now: () => Date
  readonly audit: Audit
  readonly catchUp: CatchUp
}

export function createTenancyDeps(wiring: TenancyWiring): TenancyDeps {
  const {
    organizations,
    apiTokensPerNamespace: max = DEFAULT_LIMITS.quotaApiTokens,
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
    apiTokenQuota: createQuota({ cache: wiring.apiTokens, max, what: 'API tokens (expired ones count)' }),
  }
}

/** What a slug in a path looks like, for the document alone: other text is not found rather than invalid. */
const slugParam = (about: string, example: string) =>
  z
    .string()
    .describe(about)
    .meta({ pattern: SLUG.source, maxLength: SLUG_MAX, examples: [example] })
/** The same of an id. */
export const idParam = (about: string) => z.string().describe(about).meta({ format: 'uuid' })

export const OrganizationParams = z.object({ organization: slugParam('Slug of the organization.', EXAMPLE.organization) })
export const NamespaceParams = z.object({
  ...OrganizationParams.shape,
  namespace: slugParam('Slug of the namespace.', EXAMPLE.namespace),
})

export const ORGANIZATION_PATH = '/v1/organizations/{organization}'
export const NAMESPACE_PATH = `${ORGANIZATION_PATH}/namespaces/{namespace}`
/** Data of the answer to a deletion. */
export const Nothing = z.object({})
/** Data of a list. */
export const listOf = <N extends string, V extends z.ZodType>(plural: N, view: V) =>
  z.object({ [plural]: z.array(view), nextCursor: z.string().nullable() })
