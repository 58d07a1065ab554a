import { CLUSTER_ROLES } from '../crds/roles.ts'
import type { Access, Caller, Question } from './access.ts'
import {
  type Binding,
  type BindingCaches,
  bindingsIn,
  bindingsSynced,
  clusterBindingsOf,
  createMemberships,
} from './memberships.ts'
import { groupOf } from './resource-group.ts'

export { bindingIndexes } from './memberships.ts'

export type RoleAccessDeps = BindingCaches

/**
 * {@link Access} for the embedded home: the rules of crds/roles.ts with the meaning that Kubernetes RBAC gives them. A RoleBinding grants
 * within its namespace, a ClusterRoleBinding everywhere and at cluster scope. Subjects are users and groups (no caller is a service
 * account); references other than to one of Mooring's ClusterRoles grant nothing. Answers wait until all three caches have synced.
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

/** `create mooring.dev/sharedinstances`. A subresource is a resource of its own: `sharedinstances/status` is not `sharedinstances`. */
const rightFor = ({ verb, resource }: Question): string => `${verb} ${groupOf(resource)}/${resource}`

function rightsOf({ roleRef }: Binding): ReadonlySet<string> | undefined {
  return roleRef.kind === 'ClusterRole' ? RIGHTS.get(roleRef.name) : undefined
}
