import type { Namespace } from '../../crds/core.ts'
import {
  isSlug,
  labels,
  namespaceName,
  parseNamespacePath,
  clusterRoleOf,
  PLATFORM_ADMIN_ROLE,
  type Role,
  ROLES,
} from '../../crds/names.ts'
import type { Access, Question, Membership, Verb } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import { type Blocker, type CatchUp, createCatchUp } from '../resources/cache-waits.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import type { Principal, RouteRequest, Scope } from '../http/route.ts'
import { CLUSTER_ROLES } from '../../crds/schema/roles.ts'
import { nounsOf } from '../resources/names-and-times.ts'

export interface ScopeDeps {
  readonly access: Access
  readonly namespaces: Cache<typeof Namespace>
  /** Absent where no other process creates namespaces. */
  readonly catchUp?: CatchUp
}

/** Slugs of organization and namespace from a path. */
export interface PathScope {
  readonly organization: string
  readonly namespace: string
}

/** Resolves the namespace of a request and checks the caller's rights in it. */
export interface Scopes {
  /**
   * Returns the namespace of a path.
   * @throws ApiError `not_found`; also when the caller has no role there, so that the answer does not show whether it exists
   */
  ofPath(principal: Principal, slugs: PathScope): Promise<Scope>
  /**
   * Returns the home namespace of a request without slugs in its path (docs/api.md, "Organizations and namespaces"): the credential's own,
   * else the header `Mooring-Namespace`, else the only namespace in which the caller has a role.
   * @throws ApiError `invalid_request` when the header names another namespace than the credential, `namespace_required`
   *   when the caller has roles in none or in several, `not_found` as ofPath
   */
  home(request: Pick<RouteRequest, 'principal' | 'namespaceHeader'>): Promise<Scope>
  /**
   * Returns a blocker that rejects with ApiError `conflict` as soon as the namespace is being deleted or no longer exists, so that waits for objects
   * in it end early.
   */
  rejectWhenDeleted(scope: Pick<Scope, 'namespace'>): Blocker
  may(principal: Principal, question: Question): Promise<boolean>
  /** @throws ApiError `forbidden` */
  require(principal: Principal, question: Question): Promise<void>
}

const NAMESPACE_HEADER = 'Mooring-Namespace'

export function createScopes({ access, namespaces, catchUp = createCatchUp(0) }: ScopeDeps): Scopes {
  /**
   * Whether the caller has a role in the namespace. Checked by the right to list instances, which every role has; callers whose RoleBinding lacks it
   * are found by membership.
   */
  async function isVisible(principal: Principal, namespace: string): Promise<boolean> {
    if (await access.may(principal, { verb: 'list', resource: 'sharedinstances', namespace })) return true
    const memberships = await access.memberships(principal)
    return memberships.some((membership) => namespaceName(membership.organization, membership.namespace) === namespace)
  }

  async function ofPath(principal: Principal, { organization, namespace: slug }: PathScope): Promise<Scope> {
    const namespace = namespaceName(organization, slug)
    const lookUp = () => {
      const object = namespaces.get({ name: namespace })
      return object?.metadata.labels?.[labels.organization] === organization ? object : undefined
    }
    const exists = isSlug(organization) && isSlug(slug) && (await catchUp(namespaces, lookUp))
    if (!exists || !(await isVisible(principal, namespace))) {
      throw new ApiError('not_found', `there is no namespace ${organization}/${slug}`)
    }
    return { organization, slug, namespace }
  }

  async function home({ principal, namespaceHeader }: Pick<RouteRequest, 'principal' | 'namespaceHeader'>): Promise<Scope> {
    const named = namespaceHeader === undefined ? undefined : parseHome(namespaceHeader)
    if (principal.home !== undefined) return ofPath(principal, ownHome(principal.home, named))
    if (named) return ofPath(principal, named)
    const [only, ...others] = await access.memberships(principal)
    if (only && others.length === 0) return ofPath(principal, only)
    const why = only ? 'you have roles in several namespaces' : 'you have no namespace of your own'
    throw new ApiError('namespace_required', `the header Mooring-Namespace is required (organization/namespace), because ${why}`)
  }

  async function require(principal: Principal, question: Question): Promise<void> {
    if (await access.may(principal, question)) return
    throw new ApiError('forbidden', forbiddenMessage(question, await access.memberships(principal)))
  }

  function rejectWhenDeleted({ namespace: name }: Pick<Scope, 'namespace'>): Blocker {
    const check = (now: Namespace | undefined): undefined => {
      if (now?.metadata.deletionTimestamp !== undefined || !now)
        throw new ApiError('conflict', 'the namespace was deleted meanwhile')
    }
    return (signal) => namespaces.waitFor<never>({ name }, check, signal)
  }

  return { ofPath, home, rejectWhenDeleted, may: (principal, question) => access.may(principal, question), require }
}

/** Returns the slugs of the token's namespace. @throws ApiError `invalid_request` when the header names another one */
function ownHome(home: string, named: PathScope | undefined): PathScope {
  const own = parseHome(home)
  if (!named || (named.organization === own.organization && named.namespace === own.namespace)) return own
  throw wrongField(NAMESPACE_HEADER, `must be ${home}, the namespace that this token is for, or be left out`)
}

/** Parses `acme/prod` into its slugs. @throws ApiError `invalid_request` */
function parseHome(text: string): PathScope {
  const slugs = parseNamespacePath(text)
  if (slugs) return slugs
  throw wrongField(NAMESPACE_HEADER, 'must be organization/namespace, such as acme/prod')
}

const DOING: Readonly<Record<Verb, string>> = {
  get: 'reading',
  list: 'listing',
  watch: 'watching',
  create: 'creating',
  update: 'changing',
  patch: 'changing',
  delete: 'deleting',
}

/** Actions that the API names in its own words, by verb and resource. */
const NAMED_ACTIONS: Readonly<Record<string, string>> = {
  'create rolebindings': 'giving roles to members',
  'delete rolebindings': 'removing members',
  'create tunnelpasswords': 'issuing tunnel passwords',
  'delete tunnelpasswords': 'revoking tunnel passwords',
  'patch tunnelwebhooks': 'changing and testing webhooks',
  'delete apitokens': 'revoking API tokens',
}

/** Role names in messages, by the name of the ClusterRole, weakest first. */
const ROLE_NAMES: ReadonlyMap<string, string> = new Map([
  ...ROLES.map((role) => [clusterRoleOf(role), role] as const),
  [PLATFORM_ADMIN_ROLE, 'platform admin'],
])

/** Returns the weakest role that grants the right. */
function neededRole({ verb, resource }: Question): string | undefined {
  const grants = CLUSTER_ROLES.find(({ rules }) =>
    rules.some((rule) => rule.verbs.includes(verb) && rule.resources.includes(resource)),
  )
  return grants && ROLE_NAMES.get(grants.name)
}

/** Returns the caller's role in the namespace of the question; without a namespace, the caller's strongest role. */
function ownRole(own: readonly Membership[], namespace: string | undefined): Role | undefined {
  const here = namespace === undefined ? own : own.filter((each) => `${each.organization}--${each.namespace}` === namespace)
  return ROLES.findLast((role) => here.some((each) => each.role === role))
}

/**
 * Explains a missing right: the role it needs, the caller's role, and who can grant it.
 * `creating databases needs the role editor; you are viewer: ask an admin of acme/prod`. Pure.
 */
export function forbiddenMessage(question: Question, own: readonly Membership[]): string {
  const { verb, resource, namespace } = question
  const needed = neededRole(question)
  const what = NAMED_ACTIONS[`${verb} ${resource}`] ?? `${DOING[verb]} ${nounsOf(resource)}`
  if (needed === undefined) return `${what} is not part of any role`
  const role = ownRole(own, namespace)
  const has = role === undefined ? 'you have no role' : `you are ${role}`
  const giver =
    needed === 'platform admin' || namespace === undefined
      ? 'ask a platform admin'
      : `ask an admin of ${namespace.replace('--', '/')}`
  return `${what} needs the role ${needed}; ${has}: ${giver}`
}
