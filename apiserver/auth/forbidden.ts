import { clusterRoleOf, PLATFORM_ADMIN_ROLE, type Role, ROLES } from '../../crds/names.ts'
import { CLUSTER_ROLES } from '../../crds/roles.ts'
import { nounsOf } from '../resources/nouns.ts'
import type { Membership, Question, Verb } from '../../store/access.ts'

const DOING: Readonly<Record<Verb, string>> = {
  get: 'reading',
  list: 'listing',
  watch: 'watching',
  create: 'creating',
  update: 'changing',
  patch: 'changing',
  delete: 'deleting',
}

/** Where the API has a word of its own. */
const SPECIAL: Readonly<Record<string, string>> = {
  'create rolebindings': 'giving roles to members',
  'delete rolebindings': 'removing members',
  'create tunnelpasswords': 'issuing tunnel passwords',
  'delete tunnelpasswords': 'revoking tunnel passwords',
  'delete apitokens': 'revoking API tokens',
}

/** Names of roles for people, by that of the ClusterRole, weakest first. */
const ROLE_NAMES: ReadonlyMap<string, string> = new Map([
  ...ROLES.map((role) => [clusterRoleOf(role), role] as const),
  [PLATFORM_ADMIN_ROLE, 'platform admin'],
])

/** The weakest role that allows it. */
function neededRole({ verb, resource }: Question): string | undefined {
  const grants = CLUSTER_ROLES.find(({ rules }) =>
    rules.some((rule) => rule.verbs.includes(verb) && rule.resources.includes(resource)),
  )
  return grants && ROLE_NAMES.get(grants.name)
}

/** The caller's own role: in the namespace that the question is about, else the strongest that they have anywhere. */
function ownRole(own: readonly Membership[], namespace: string | undefined): Role | undefined {
  const here = namespace === undefined ? own : own.filter((each) => `${each.organization}--${each.namespace}` === namespace)
  return ROLES.findLast((role) => here.some((each) => each.role === role))
}

/**
 * Why a caller may not do what the question is about: what it needs, what the caller has, and who can change that.
 * `creating databases needs the role editor; you are viewer: ask an admin of acme/prod`. Pure.
 */
export function forbiddenMessage(question: Question, own: readonly Membership[]): string {
  const { verb, resource, namespace } = question
  const needed = neededRole(question)
  const what = SPECIAL[`${verb} ${resource}`] ?? `${DOING[verb]} ${nounsOf(resource)}`
  if (needed === undefined) return `${what} is not part of any role`
  const role = ownRole(own, namespace)
  const has = role === undefined ? 'you have no role' : `you are ${role}`
  const giver =
    needed === 'platform admin' || namespace === undefined
      ? 'ask a platform admin'
      : `ask an admin of ${namespace.replace('--', '/')}`
  return `${what} needs the role ${needed}; ${has}: ${giver}`
}
