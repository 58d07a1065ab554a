import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { suffixOf, tenantSuffix } from '../shared-instance/naming.ts'

/**
 * Returns the names of an engine's catalog that belong to no SharedInstance. The store, not a cache, is read after the catalog: a database
 * is created after its resource, so a database whose resource is missing now is an orphan.
 */
export async function findOrphans(store: Store, names: Iterable<string>): Promise<readonly string[]> {
  const ours = [...names].flatMap((name) => {
    const suffix = suffixOf(name)
    return suffix === undefined ? [] : [{ name, suffix }]
  })
  if (ours.length === 0) return []
  const { items } = await store.list(SharedInstance)
  const owned = new Set(items.map(({ metadata }) => tenantSuffix(metadata.uid)))
  return ours.filter(({ suffix }) => !owned.has(suffix)).map(({ name }) => name)
}
