import type { Namespace } from '../../crds/core.ts'
import { RoleBinding } from '../../crds/core.ts'
import { clusterRoleOf, labels, namespaceName, roleGroup, ROLES, type Role } from '../../crds/names.ts'
import { Organization } from '../../crds/organization.ts'
import type { Cache } from '../../store/cache.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Key, Store } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'

export interface NamespaceDeps {
  readonly store: Store
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly organizations: Cache<typeof Organization>
}

/** Makes what every tenant namespace has: one RoleBinding a role, for the group its tokens carry, and its organization. */
export function createNamespaceReconciler({
  store,
  namespaces,
  roleBindings,
  organizations,
}: NamespaceDeps): (key: Key) => Promise<Outcome> {
  async function bind(namespace: string, role: Role): Promise<void> {
    const name = `mooring-${role}`
    if (roleBindings.get({ namespace, name })) return
    await once(
      store.create(RoleBinding, {
        metadata: { namespace, name, labels: { [labels.managedBy]: 'mooring' } },
        roleRef: { apiGroup: RoleBinding.group, kind: 'ClusterRole', name: clusterRoleOf(role) },
        subjects: [{ kind: 'Group', apiGroup: RoleBinding.group, name: roleGroup(namespace, role) }],
      }),
    )
  }

  return async function reconcileNamespace({ name }) {
    const namespace = namespaces.get({ name })
    const organization = namespace?.metadata.labels?.[labels.organization]
    const slug = namespace?.metadata.labels?.[labels.namespace]
    if (!organization || !slug || namespace.metadata.deletionTimestamp !== undefined)
      return { verdict: 'settled', reason: 'NotTenant' }
    // Labels that say another name than the object's own would give away somebody else's namespace.
    if (namespaceName(organization, slug) !== name) return { verdict: 'settled', reason: 'LabelsDisagree' }
    await Promise.all(ROLES.map((role) => bind(name, role)))
    if (!organizations.get({ name: organization })) {
      await once(store.create(Organization, { metadata: { name: organization }, spec: { name: organization } }))
    }
    return { verdict: 'settled', reason: 'Bound' }
  }
}

async function once(creation: Promise<unknown>): Promise<void> {
  try {
    await creation
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
  }
}
