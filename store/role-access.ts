import { CLUSTER_ROLES } from '../crds/roles.ts'
import { type Access, type Caller, groupOf, type Question } from './access.ts'
import {
  type Binding,
  type BindingCaches,
  bindingsIn,
  bindingsSynced,
  clusterBindingsOf,
  createMemberships,
} from './memberships.ts'

export { bindingIndexes } from './memberships.ts'

export type RoleAccessDeps = BindingCaches

/**
 * Creates {@link Access} for embedded mode: the rules of crds/roles.ts with the semantics of Kubernetes RBAC. A RoleBinding grants rights
 * in its namespace, a ClusterRoleBinding in all namespaces and at cluster scope. Subjects are users and groups, as callers are never service
 * accounts. Only references to Mooring's ClusterRoles grant rights. Answers wait until all three caches have synced.
 */
export function createRoleAccess(caches: RoleAccessDeps): Access {
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
