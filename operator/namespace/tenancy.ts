import { Namespace } from '../../crds/core.ts'
import { isSlug, labels, namespaceName, slugsOf as slugsIn } from '../../crds/names.ts'
import { type TenantNamespace, TenantNamespaceReason } from '../../crds/tenant-namespace.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf } from '../../store/conditions.ts'
import type { Key, Store } from '../../store/port.ts'
import { aspectChangesOf, type Source } from '../runtime/source.ts'
import { slugsOf } from './resources.ts'

/** Returns a sentence about the labels that a Namespace lacks to be a tenant's; undefined when it is a tenant's. Pure. */
export function labelProblem(name: string, namespace: Namespace | undefined): string | undefined {
  if (!namespace) return `its Namespace ${name} does not exist`
  if (slugsOf(namespace)) return undefined
  const { organization, namespace: slug } = slugsIn(name)
  if (![organization, slug].every(isSlug) || namespaceName(organization, slug) !== name) {
    return `its Namespace is called ${name}, and a tenant's is called {organization}--{namespace}, with both as labels ${labels.organization} and ${labels.namespace}`
  }
  const wrong = [
    [labels.organization, organization],
    [labels.namespace, slug],
  ].flatMap(([label = '', value]) => labelFault(label, value, namespace.metadata.labels?.[label]))
  return `its Namespace ${name} ${wrong.join(' and ')}`
}

function labelFault(label: string, desired: string | undefined, present: string | undefined): readonly string[] {
  if (present === desired) return []
  return [present === undefined ? `has no label ${label}=${desired}` : `has the label ${label}=${present}, not ${desired}`]
}

export interface TenancyDeps {
  readonly store: Pick<Store, 'get'>
  readonly namespaces: Cache<typeof Namespace>
  readonly tenantNamespaces: Cache<typeof TenantNamespace>
}

/** Whether Namespaces are those of tenants: Mooring serves no objects in any other. */
export interface Tenancy {
  /** Returns a sentence about why a Namespace is not a tenant's; undefined when it is. */
  problemOf(namespace: string | undefined): Promise<string | undefined>
  /** Sources of the objects of a Namespace that has become a tenant's, or is one no more. A reconciler with them starts with complete caches. */
  changes(objectsIn: (namespace: string) => readonly Key[]): readonly Source[]
}

export function createTenancy({ store, namespaces, tenantNamespaces }: TenancyDeps): Tenancy {
  /** Whether the operator restores the labels of the Namespace. */
  function isKept(name: string): boolean {
    const tenant = tenantNamespaces.get({ name })
    return tenant !== undefined && conditionOf(tenant, 'Ready')?.reason !== TenantNamespaceReason.NamespaceTaken
  }

  return {
    async problemOf(name = '') {
      if (isKept(name) || labelProblem(name, namespaces.get({ name })) === undefined) return undefined
      // The cache may lag behind: the Namespace may have been created or labelled a moment ago.
      return labelProblem(name, await store.get(Namespace, { name }))
    },
    changes: (objectsIn) => [
      aspectChangesOf(
        namespaces,
        ({ metadata }) => `${metadata.uid} ${metadata.labels?.[labels.organization]} ${metadata.labels?.[labels.namespace]}`,
        ({ name }) => objectsIn(name),
      ),
      aspectChangesOf(
        tenantNamespaces,
        (tenant) => `${tenant.metadata.uid} ${conditionOf(tenant, 'Ready')?.reason}`,
        ({ name }) => objectsIn(name),
      ),
    ],
  }
}
