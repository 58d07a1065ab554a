import { KINDS } from '../crds/index.ts'
import { GROUP, type Role, clusterRoleOf, labels, PLATFORM_ADMIN_ROLE, ROLES } from '../crds/names.ts'
import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import type { Cache } from './cache.ts'
import { CLUSTER_ROLES } from '../crds/schema/roles.ts'

/** Authenticated caller. User and group names have the prefix of their issuer (`local:alice`), except Mooring's own groups (`mooring:…`). */
export interface Caller {
  readonly user: string
  readonly groups: readonly string[]
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** Access to check, in Kubernetes' terms. `namespace` is absent for cluster-scoped resources. */
export interface Question {
  readonly verb: Verb
  /** Plural of the kind, e.g. `sharedinstances`, `secrets`. */
  readonly resource: string
  readonly namespace?: string | undefined
}

/** Role of a caller in a namespace of an organization. */
export interface Membership {
  readonly organization: string
  readonly namespace: string
  readonly role: Role
}

/** Authorization. Cluster mode asks Kubernetes RBAC (SubjectAccessReview); embedded mode evaluates the same roles and bindings itself. */
export interface Access {
  /** Returns whether the caller has this access. */
  may(caller: Caller, question: Question): Promise<boolean>
  /** Returns the namespaces in which the caller has a role, with the strongest role, ordered by organization, then namespace. */
  memberships(caller: Caller): Promise<readonly Membership[]>
}

const GROUPS: ReadonlyMap<string, string> = new Map(KINDS.map(({ plural, group }) => [plural, group]))

/** Returns the API group of a resource: `secrets`, `sharedinstances/status`. */
export function groupOf(resource: string): string {
  const [plural = ''] = resource.split('/')
  // An unknown resource is a planned kind of Mooring (crds/schema/roles.ts).
  return GROUPS.get(plural) ?? GROUP
}

type Binding = RoleBinding

/** Index of bindings by subject: `User:local:alice`, `Group:mooring:platform-admins`. */
const BY_SUBJECT = 'subject'
/** Index of bindings by namespace and subject: `acme--prod/User:local:alice`. */
const BY_NAMESPACED_SUBJECT = 'namespaced-subject'

const subjectsOf = ({ subjects }: Binding) => subjects.map(({ kind, name }) => `${kind}:${name}`)

/** Indexes that both caches of bindings need: an answer reads only the caller's own bindings. */
export const bindingIndexes = {
  [BY_SUBJECT]: subjectsOf,
  [BY_NAMESPACED_SUBJECT]: (binding: Binding) =>
    subjectsOf(binding).map((subject) => `${binding.metadata.namespace ?? ''}/${subject}`),
}

/** Caches of the bindings and namespaces. The bindings need {@link bindingIndexes}. */
export interface BindingCaches {
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  readonly namespaces: Cache<typeof Namespace>
}

/**
 * Creates {@link Access} for embedded mode: the rules of crds/schema/roles.ts with the semantics of Kubernetes RBAC. A RoleBinding grants rights
 * in its namespace, a ClusterRoleBinding in all namespaces and at cluster scope. Subjects are users and groups, as callers are never service
 * accounts. Only references to Mooring's ClusterRoles grant rights. Answers wait until all three caches have synced.
 */
export function createRoleAccess(caches: BindingCaches): Access {
  async function may(caller: Caller, question: Question): Promise<boolean> {
    await bindingsSynced(caches)
    const { namespace } = question
    const right = rightFor(question)
    const grants = (binding: Binding) => rightsOf(binding)?.has(right) === true
    if (clusterBindingsOf(caches, caller).some(grants)) return true
    return namespace !== undefined && bindingsIn(caches, namespace, caller).some(grants)
  }

  return { may, memberships: createMemberships(caches) }
}

/** Creates `memberships` of {@link Access}, which evaluates the cached bindings. It waits until the caches have synced. */
export function createMemberships(caches: BindingCaches): Access['memberships'] {
  const { roleBindings, namespaces } = caches

  return async function memberships(caller) {
    await bindingsSynced(caches)
    const strongest = new Map<string, Membership>()
    const note = (namespace: Namespace | undefined, binding: Binding) => {
      const found = namespace && membershipOf(namespace, binding)
      if (!found) return
      const name = namespace.metadata.name
      const known = strongest.get(name)
      if (!known || ROLES.indexOf(found.role) > ROLES.indexOf(known.role)) strongest.set(name, found)
    }
    for (const binding of clusterBindingsOf(caches, caller)) {
      for (const namespace of namespaces.list()) note(namespace, binding)
    }
    for (const subject of subjectsFor(caller)) {
      for (const binding of roleBindings.byIndex(BY_SUBJECT, subject)) {
        note(namespaces.get({ name: binding.metadata.namespace ?? '' }), binding)
      }
    }
    return [...strongest.values()].sort((a, b) => compare(a.organization, b.organization) || compare(a.namespace, b.namespace))
  }
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

/** Resolves when all three caches have their first list. */
async function bindingsSynced({ roleBindings, clusterRoleBindings, namespaces }: BindingCaches): Promise<void> {
  await Promise.all([roleBindings.synced(), clusterRoleBindings.synced(), namespaces.synced()])
}

/** Returns the cluster-scoped bindings of the caller and its groups. Callers are never service accounts. */
function clusterBindingsOf({ clusterRoleBindings }: BindingCaches, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => clusterRoleBindings.byIndex(BY_SUBJECT, subject))
}

/** Returns the bindings of the caller and its groups in one namespace. */
function bindingsIn({ roleBindings }: BindingCaches, namespace: string, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => roleBindings.byIndex(BY_NAMESPACED_SUBJECT, `${namespace}/${subject}`))
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

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

/** Returns a right as text: `create mooring.dev/sharedinstances`. A subresource is a separate resource: `sharedinstances/status`. */
const rightFor = ({ verb, resource }: Question): string => `${verb} ${groupOf(resource)}/${resource}`

function rightsOf({ roleRef }: Binding): ReadonlySet<string> | undefined {
  return roleRef.kind === 'ClusterRole' ? RIGHTS.get(roleRef.name) : undefined
}
