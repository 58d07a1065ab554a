import { SharedInstance } from '../crds/shared-instance.ts'
import { isStoreError } from '../store/errors.ts'
import type { Store } from '../store/port.ts'
import { ApiError } from './errors.ts'
import { mustStay } from './instance-lookup.ts'

/** The operator writes status beside us, so a conflict is ordinary; this many in a row are not. */
const ATTEMPTS = 20

/** An instance before a request changed it, and after. */
export interface RaisedVersion {
  readonly before: SharedInstance
  readonly after: SharedInstance
}

/**
 * Raises a counter in an instance's spec by exactly one, whoever else writes meanwhile.
 * @throws ApiError `not_found`, `conflict` when it is being deleted, `unavailable`; StoreError
 */
export async function raiseVersion(
  store: Store,
  { metadata }: SharedInstance,
  counter: 'passwordVersion' | 'resetVersion',
): Promise<RaisedVersion> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const now = await store.get(SharedInstance, metadata)
    if (now?.metadata.uid !== metadata.uid) throw new ApiError('not_found', 'there is no such instance')
    mustStay(now)
    const { uid, resourceVersion } = now.metadata
    try {
      const patch = { spec: { [counter]: now.spec[counter] + 1 } }
      return { before: now, after: await store.mergePatch(SharedInstance, metadata, patch, { uid, resourceVersion }) }
    } catch (error) {
      if (!isStoreError(error, 'conflict')) throw error
    }
  }
  throw new ApiError('unavailable', 'this instance is changing all the time; try again')
}
