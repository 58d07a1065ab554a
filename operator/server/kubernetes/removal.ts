import { Secret } from '../../../crds/core.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import type { Kind, Resource } from '../../../crds/kind.ts'
import { isStoreError } from '../../../store/errors.ts'
import { keyOf } from '../../../store/key-string.ts'
import type { Store } from '../../../store/port.ts'
import { ConfigMap, NetworkPolicy, PersistentVolumeClaim, Pod, Service, StatefulSet } from '../../kubernetes/kinds.ts'
import { selectorOf } from './names.ts'

/** Order of deletion. The StatefulSet deletes its pods, which it would otherwise replace. */
const KINDS: readonly Kind[] = [StatefulSet, Service, PersistentVolumeClaim, ConfigMap, Secret]

/**
 * Deletes all objects of a server, data included. Its NetworkPolicy is deleted last, so that its pod is never without one.
 * @returns true when no object was left at the time of the call
 * @throws StoreError
 */
export async function removeChildren(store: Store, { metadata }: Pick<DatabaseServer, 'metadata'>): Promise<boolean> {
  const scope = { namespace: metadata.namespace, labels: selectorOf(metadata.name) }

  async function find(kind: Kind): Promise<readonly Resource<Kind>[]> {
    return (await store.list(kind, scope)).items
  }

  async function remove(kind: Kind): Promise<number> {
    const found = await find(kind)
    const remaining = found.filter((object) => object.metadata.deletionTimestamp === undefined)
    await Promise.all(remaining.map((object) => removeOne(store, kind, object)))
    return found.length
  }

  let left = 0
  for (const kind of KINDS) left += await remove(kind)
  left += (await find(Pod)).length
  if (left > 0) return false
  return (await remove(NetworkPolicy)) === 0
}

async function removeOne(store: Store, kind: Kind, object: Resource<Kind>): Promise<void> {
  try {
    await store.delete(kind, keyOf(object), { uid: object.metadata.uid })
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
  }
}
