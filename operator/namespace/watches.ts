import type { TenantNamespace } from '../../crds/tenant-namespace.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf, type Key } from '../../store/port.ts'
import { changesOf, objectsOf, type Source } from '../runtime/source.ts'
import type { ObserveDeps } from './observe.ts'

type Watched = Pick<ObserveDeps, 'tenantNamespaces' | 'namespaces' | 'roleBindings' | 'organizations' | 'instances'>

/** Sources of the reconciler of tenant namespaces. */
export function namespaceWatches({
  tenantNamespaces,
  namespaces,
  roleBindings,
  organizations,
  instances,
}: Watched): readonly Source[] {
  return [
    objectsOf(tenantNamespaces),
    objectsOf(namespaces),
    changesOf(roleBindings, around),
    changesOf(organizations, (changed) => ofOrganization(tenantNamespaces, changed)),
    // Instances change far more often than namespaces are deleted, so only those of a Namespace that is being deleted count.
    changesOf(instances, (changed) => around(changed).filter((key) => isGoing(tenantNamespaces, key))),
  ]
}

const around = ({ namespace }: Key): readonly Key[] => (namespace === undefined ? [] : [{ name: namespace }])

const ofOrganization = (cache: Cache<typeof TenantNamespace>, { name }: Key): readonly Key[] =>
  cache
    .list()
    .filter(({ spec }) => spec.organization === name)
    .map(keyOf)

const isGoing = (cache: Cache<typeof TenantNamespace>, key: Key): boolean =>
  cache.get(key)?.metadata.deletionTimestamp !== undefined
