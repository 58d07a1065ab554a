import type { Kind, ObjectMeta } from '../../crds/kind.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { type IfMatch, requireExpected } from '../http/if-match.ts'

/** Object to delete. */
interface Found {
  readonly metadata: ObjectMeta
}

const isAny = (ifMatch: IfMatch | undefined): boolean => ifMatch === undefined || ifMatch === '*'

/**
 * Deletes this object if it has a version that the caller expects.
 * @throws ApiError `conflict` at another version; StoreError `not_found`, `conflict`
 */
export async function deleteExpected(store: Store, kind: Kind, { metadata }: Found, ifMatch: IfMatch | undefined): Promise<void> {
  const { uid } = metadata
  if (isAny(ifMatch)) return store.delete(kind, metadata, { uid })
  const now = (await store.get(kind, metadata))?.metadata
  if (now?.uid === uid) requireExpected(now.resourceVersion, ifMatch)
  return store.delete(kind, metadata, { uid, resourceVersion: now?.resourceVersion })
}

/**
 * Starts the deletion of this object. Returns false when another request started it before or the object is gone.
 * @throws ApiError, StoreError `conflict` at a version that the caller does not expect
 */
export async function requestDeletion(store: Store, kind: Kind, found: Found, ifMatch: IfMatch | undefined): Promise<boolean> {
  const isBeingDeleted = found.metadata.deletionTimestamp !== undefined
  if (isBeingDeleted && isAny(ifMatch)) return false
  try {
    await deleteExpected(store, kind, found, ifMatch)
    return !isBeingDeleted
  } catch (error) {
    if (isStoreError(error, 'not_found') || (isStoreError(error, 'conflict') && isAny(ifMatch))) return false
    throw error
  }
}
