import { Namespace, type RoleBinding } from '../../crds/core.ts'
import { labels } from '../../crds/names.ts'
import type { Organization } from '../../crds/organization.ts'
import { InstanceReason, type SharedInstance } from '../../crds/shared-instance.ts'
import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Observed } from './plan.ts'
import { bindingsOf } from './resources.ts'

export interface ObserveDeps {
  readonly store: Store
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
  readonly namespaces: Cache<typeof Namespace>
  readonly roleBindings: Cache<typeof RoleBinding>
  readonly organizations: Cache<typeof Organization>
  readonly instances: Cache<typeof SharedInstance>
  /** Whether the components run under service accounts, which need a RoleBinding in each tenant namespace. */
  readonly serviceAccounts: boolean
}

/** Reads the state that decisions about a tenant namespace depend on. */
export async function observe(deps: ObserveDeps, name: string): Promise<Observed> {
  const tenant = deps.tenantNamespaces.get({ name })
  const namespace = await namespaceOf(deps, name, tenant)
  const organization = tenant?.spec.organization
  return {
    tenant,
    namespace,
    bindings: new Map(deps.roleBindings.list({ namespace: name }).map((binding) => [binding.metadata.name, binding])),
    desired: bindingsOf(name, deps),
    organization: organization === undefined || deps.organizations.get({ name: organization }) !== undefined,
    blocked: blockedBy(deps, name),
  }
}

/**
 * Returns the Namespace. The two caches may be of different age, so two cases are read from the store: a Namespace missing in its cache,
 * which may have been created a moment ago, and a Namespace without a TenantNamespace, which may have been deleted a moment ago and would
 * otherwise be adopted.
 */
async function namespaceOf({ store, namespaces }: ObserveDeps, name: string, tenant: TenantNamespace | undefined) {
  const cached = namespaces.get({ name })
  const isStray = !tenant && cached?.metadata.labels?.[labels.organization] !== undefined
  return isStray || (tenant && !cached) ? store.get(Namespace, { name }) : cached
}

function blockedBy({ instances }: ObserveDeps, namespace: string): string | undefined {
  const blocked = instances
    .list({ namespace })
    .filter((instance) => conditionOf(instance, 'Ready')?.reason === InstanceReason.CleanupBlocked)
  const [first] = blocked
  if (!first) return undefined
  return `${blocked.length} instances cannot be cleaned up; ${first.metadata.name}: ${conditionOf(first, 'Ready')?.message ?? ''}`
}
