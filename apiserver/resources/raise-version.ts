import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { changeSpec, type ChangedSpec, type SpecChange } from './change-spec.ts'

type Found = Pick<SpecChange<typeof SharedInstance>, 'found' | 'ifMatch'>

/**
 * Increments a counter in an instance's spec by one, and repeats that after a conflict with another writer.
 * @throws ApiError `not_found`; `conflict` when the instance is being deleted or has no version of `ifMatch`; `unavailable`; StoreError
 */
export function raiseVersion(
  store: Store,
  of: Found,
  counter: 'passwordVersion' | 'resetVersion',
): Promise<ChangedSpec<typeof SharedInstance>> {
  return changeSpec(store, SharedInstance, { ...of, specOf: ({ spec }) => ({ [counter]: spec[counter] + 1 }) })
}
