import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { clusterRoleOf, labels, PLATFORM_ADMIN_ROLE, type Role, ROLES } from '../crds/names.ts'
import type { Access, Caller, Membership } from './access.ts'
import type { Cache } from './cache.ts'

export type Binding = RoleBinding

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

/** Resolves when all three caches have their first list. */
export async function bindingsSynced({ roleBindings, clusterRoleBindings, namespaces }: BindingCaches): Promise<void> {
  await Promise.all([roleBindings.synced(), clusterRoleBindings.synced(), namespaces.synced()])
}

/** Returns the cluster-scoped bindings of the caller and its groups. Callers are never service accounts. */
export function clusterBindingsOf({ clusterRoleBindings }: BindingCaches, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => clusterRoleBindings.byIndex(BY_SUBJECT, subject))
}

/** Returns the bindings of the caller and its groups in one namespace. */
export function bindingsIn({ roleBindings }: BindingCaches, namespace: string, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => roleBindings.byIndex(BY_NAMESPACED_SUBJECT, `${namespace}/${subject}`))
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

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))
