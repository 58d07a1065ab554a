import type { Namespace } from '../../crds/core.ts'
import { isSlug, labels, namespaceName, parseNamespacePath } from '../../crds/names.ts'
import type { Access, Question } from '../../store/access.ts'
import type { Cache } from '../../store/cache.ts'
import type { Hindrance } from '../resources/cache-waits.ts'
import { type CatchUp, createCatchUp } from '../resources/catch-up.ts'
import { ApiError, wrongField } from '../http/errors.ts'
import { forbiddenMessage } from './forbidden.ts'
import type { Principal, RouteRequest, Scope } from '../http/route.ts'

export interface ScopeDeps {
  readonly access: Access
  readonly namespaces: Cache<typeof Namespace>
  /** None where this process alone creates. */
  readonly catchUp?: CatchUp
}

/** Slugs as they stand in a path. */
export interface PathScope {
  readonly organization: string
  readonly namespace: string
}

/** Which namespace a request is about, and whether its caller may. */
export interface Scopes {
  /** @throws ApiError `not_found` when it does not exist or the caller has no role there: the two look the same */
  ofPath(principal: Principal, slugs: PathScope): Promise<Scope>
  /**
   * The home namespace of a call without slugs in its path (surface, section 2, "Who"): what the credential names, else the header
   * `Mooring-Namespace`, else the only one where the caller has a role.
   * @throws ApiError `invalid_request` when the header names another namespace than the credential, `namespace_required` when none or several
   *   are left, `not_found` as ofPath
   */
  home(request: Pick<RouteRequest, 'principal' | 'namespaceHeader'>): Promise<Scope>
  /**
   * The end of a namespace that was there: that it is being deleted, or gone. Whoever waits for something in it waits no longer.
   * @throws ApiError `conflict`
   */
  endOf(scope: Pick<Scope, 'namespace'>): Hindrance
  may(principal: Principal, question: Question): Promise<boolean>
  /** @throws ApiError `forbidden` */
  require(principal: Principal, question: Question): Promise<void>
}

const NAMESPACE_HEADER = 'Mooring-Namespace'

export function createScopes({ access, namespaces, catchUp = createCatchUp(0) }: ScopeDeps): Scopes {
  /** Every role may list instances; a member by a narrower binding of the cluster's own still has a membership. */
  async function isVisible(principal: Principal, namespace: string): Promise<boolean> {
    if (await access.may(principal, { verb: 'list', resource: 'sharedinstances', namespace })) return true
    const memberships = await access.memberships(principal)
    return memberships.some((membership) => namespaceName(membership.organization, membership.namespace) === namespace)
  }

  async function ofPath(principal: Principal, { organization, namespace: slug }: PathScope): Promise<Scope> {
    const namespace = namespaceName(organization, slug)
    const look = () => {
      const object = namespaces.get({ name: namespace })
      return object?.metadata.labels?.[labels.organization] === organization ? object : undefined
    }
    const isThere = isSlug(organization) && isSlug(slug) && (await catchUp(namespaces, look))
    if (!isThere || !(await isVisible(principal, namespace))) {
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
    const why = only ? 'you have a role in several namespaces' : 'you have no role in any namespace'
    throw new ApiError('namespace_required', `${why}: name one in the header Mooring-Namespace, as organization/namespace`)
  }

  async function require(principal: Principal, question: Question): Promise<void> {
    if (await access.may(principal, question)) return
    throw new ApiError('forbidden', forbiddenMessage(question, await access.memberships(principal)))
  }

  function endOf({ namespace: name }: Pick<Scope, 'namespace'>): Hindrance {
    const look = (now: Namespace | undefined): undefined => {
      if (now?.metadata.deletionTimestamp !== undefined || !now)
        throw new ApiError('conflict', 'the namespace was deleted meanwhile')
    }
    return (signal) => namespaces.waitFor<never>({ name }, look, signal)
  }

  return { ofPath, home, endOf, may: (principal, question) => access.may(principal, question), require }
}

/** Slugs of the namespace that a token is for. @throws ApiError `invalid_request` when the caller named another one */
function ownHome(home: string, named: PathScope | undefined): PathScope {
  const own = parseHome(home)
  if (!named || (named.organization === own.organization && named.namespace === own.namespace)) return own
  throw wrongField(NAMESPACE_HEADER, `must be ${home}, the namespace that this token is for, or be left out`)
}

/** `acme/prod` → its slugs. @throws ApiError `invalid_request` */
function parseHome(text: string): PathScope {
  const slugs = parseNamespacePath(text)
  if (slugs) return slugs
  throw wrongField(NAMESPACE_HEADER, 'must be organization/namespace, such as acme/prod')
}
