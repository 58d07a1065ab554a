import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { suffixOf, tenantSuffix } from '../shared-instance/naming.ts'

/**
 * Which of the names in an engine's catalog belong to no SharedInstance. The store is read after the catalog, and not from a cache: a
 * database exists only after its resource, so one whose resource is not there now has lost it.
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
