import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { KINDS } from '../crds/index.ts'
import { clusterRoleOf, GROUP, labels, PLATFORM_ADMIN_ROLE, type Role, ROLES } from '../crds/names.ts'
import { CLUSTER_ROLES } from '../crds/roles.ts'
import type { Access, Caller, Membership, Question } from './access.ts'
import type { Cache } from './cache.ts'

type Binding = RoleBinding

/** The index of bindings by subject: `User:local:alice`, `Group:mooring:platform-admins`. */
const BY_SUBJECT = 'subject'
/** The same within a namespace: `acme--prod/User:local:alice`. */
const BY_NAMESPACED_SUBJECT = 'namespaced-subject'

const subjectsOf = ({ subjects }: Binding) => subjects.map(({ kind, name }) => `${kind}:${name}`)

/** Indexes that the two caches of bindings must be made with: an answer costs the caller's own bindings, however many there are. */
export const bindingIndexes = {
  [BY_SUBJECT]: subjectsOf,
  [BY_NAMESPACED_SUBJECT]: (binding: Binding) =>
    subjectsOf(binding).map((subject) => `${binding.metadata.namespace ?? ''}/${subject}`),
}

export interface RoleAccessDeps {
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  readonly namespaces: Cache<typeof Namespace>
}

/**
 * {@link Access} for the embedded home: the rules of crds/roles.ts with the meaning that Kubernetes RBAC gives them. A RoleBinding grants
 * within its namespace, a ClusterRoleBinding everywhere and at cluster scope. Subjects are users and groups (no caller is a service
 * account); references other than to one of Mooring's ClusterRoles grant nothing. Answers wait until all three caches have synced.
 */
export function createRoleAccess({ roleBindings, clusterRoleBindings, namespaces }: RoleAccessDeps): Access {
  const synced = () => Promise.all([roleBindings.synced(), clusterRoleBindings.synced(), namespaces.synced()])

  function clusterBindingsOf(caller: Caller): readonly Binding[] {
    return subjectsFor(caller).flatMap((subject) => clusterRoleBindings.byIndex(BY_SUBJECT, subject))
  }

  async function may(caller: Caller, question: Question): Promise<boolean> {
    await synced()
    const { namespace } = question
    const right = rightFor(question)
    const grants = (binding: Binding) => rightsOf(binding)?.has(right) === true
    if (clusterBindingsOf(caller).some(grants)) return true
    if (namespace === undefined) return false
    const inNamespace = (subject: string) => roleBindings.byIndex(BY_NAMESPACED_SUBJECT, `${namespace}/${subject}`)
    return subjectsFor(caller).some((subject) => inNamespace(subject).some(grants))
  }

  async function memberships(caller: Caller): Promise<readonly Membership[]> {
    await synced()
    const strongest = new Map<string, Membership>()
    const note = (namespace: Namespace | undefined, binding: Binding) => {
      const found = namespace && membershipOf(namespace, binding)
      if (!found) return
      const name = namespace.metadata.name
      const known = strongest.get(name)
      if (!known || ROLES.indexOf(found.role) > ROLES.indexOf(known.role)) strongest.set(name, found)
    }
    for (const binding of clusterBindingsOf(caller)) for (const namespace of namespaces.list()) note(namespace, binding)
    for (const subject of subjectsFor(caller)) {
      for (const binding of roleBindings.byIndex(BY_SUBJECT, subject)) {
        note(namespaces.get({ name: binding.metadata.namespace ?? '' }), binding)
      }
    }
    return [...strongest.values()].sort((a, b) => compare(a.organization, b.organization) || compare(a.namespace, b.namespace))
  }

  return { may, memberships }
}

const RIGHTS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  CLUSTER_ROLES.map(({ name, rules }) => [
    name,
    new Set(
      rules.flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`))),
      ),
    ),
  ]),
)

const GROUPS: ReadonlyMap<string, string> = new Map(KINDS.map(({ plural, group }) => [plural, group]))

/** `create mooring.dev/sharedinstances`. A subresource is a resource of its own: `sharedinstances/status` is not `sharedinstances`. */
function rightFor({ verb, resource }: Question): string {
  const [plural = ''] = resource.split('/')
  // What no store serves yet can only be a kind of ours that is still to come.
  return `${verb} ${GROUPS.get(plural) ?? GROUP}/${resource}`
}

function rightsOf({ roleRef }: Binding): ReadonlySet<string> | undefined {
  return roleRef.kind === 'ClusterRole' ? RIGHTS.get(roleRef.name) : undefined
}

const MEMBER_ROLES: ReadonlyMap<string, Role> = new Map([
  ...ROLES.map((role) => [clusterRoleOf(role), role] as const),
  [PLATFORM_ADMIN_ROLE, 'admin'],
])

function membershipOf({ metadata }: Namespace, { roleRef }: Binding): Membership | undefined {
  const organization = metadata.labels?.[labels.organization]
  const namespace = metadata.labels?.[labels.namespace]
  const role = roleRef.kind === 'ClusterRole' ? MEMBER_ROLES.get(roleRef.name) : undefined
  return organization !== undefined && namespace !== undefined && role ? { organization, namespace, role } : undefined
}

function subjectsFor({ user, groups }: Caller): readonly string[] {
  return [`User:${user}`, ...new Set(groups.map((group) => `Group:${group}`))]
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))
