import type { Kind, ObjectMeta } from '../../crds/kind.ts'
import { isStoreError } from '../../store/errors.ts'
import type { Store } from '../../store/port.ts'
import { type IfMatch, requireExpected } from '../http/if-match.ts'

/** The very object that is to go, as it was found. */
interface Found {
  readonly metadata: ObjectMeta
}

const isAny = (ifMatch: IfMatch | undefined): boolean => ifMatch === undefined || ifMatch === '*'

/**
 * Deletes this very object, at a version that the caller expects.
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
 * Records the wish that this very object go. False: somebody had asked before, or it has gone meanwhile, which is what was wanted.
 * @throws ApiError, StoreError `conflict` at a version that the caller does not expect
 */
export async function requestDeletion(store: Store, kind: Kind, found: Found, ifMatch: IfMatch | undefined): Promise<boolean> {
  const isGoing = found.metadata.deletionTimestamp !== undefined
  if (isGoing && isAny(ifMatch)) return false
  try {
    await deleteExpected(store, kind, found, ifMatch)
    return !isGoing
  } catch (error) {
    if (isStoreError(error, 'not_found') || (isStoreError(error, 'conflict') && isAny(ifMatch))) return false
    throw error
  }
}
