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

/** Actions that the API names in its own words, by verb and resource. */
const NAMED_ACTIONS: Readonly<Record<string, string>> = {
  'create rolebindings': 'giving roles to members',
  'delete rolebindings': 'removing members',
  'create tunnelpasswords': 'issuing tunnel passwords',
  'delete tunnelpasswords': 'revoking tunnel passwords',
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
