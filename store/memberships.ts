import type { ClusterRoleBinding, Namespace, RoleBinding } from '../crds/core.ts'
import { clusterRoleOf, labels, PLATFORM_ADMIN_ROLE, type Role, ROLES } from '../crds/names.ts'
import type { Access, Caller, Membership } from './access.ts'
import type { Cache } from './cache.ts'

export type Binding = RoleBinding

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

/** What says who has which role where; the bindings with {@link bindingIndexes}. */
export interface BindingCaches {
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly clusterRoleBindings: Cache<typeof ClusterRoleBinding>
  readonly namespaces: Cache<typeof Namespace>
}

/** Resolves when all three have their first list. */
export async function bindingsSynced({ roleBindings, clusterRoleBindings, namespaces }: BindingCaches): Promise<void> {
  await Promise.all([roleBindings.synced(), clusterRoleBindings.synced(), namespaces.synced()])
}

/** Bindings that name the caller or one of its groups, at cluster scope. No caller is a service account. */
export function clusterBindingsOf({ clusterRoleBindings }: BindingCaches, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => clusterRoleBindings.byIndex(BY_SUBJECT, subject))
}

/** The same in one namespace. */
export function bindingsIn({ roleBindings }: BindingCaches, namespace: string, caller: Caller): readonly Binding[] {
  return subjectsFor(caller).flatMap((subject) => roleBindings.byIndex(BY_NAMESPACED_SUBJECT, `${namespace}/${subject}`))
}

/** `memberships` of {@link Access}, from the bindings as they are known now. Waits until the caches have synced. */
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
