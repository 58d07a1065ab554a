import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Store } from '../../store/port.ts'
import { changeSpec, type ChangedSpec, type SpecChange } from './change-spec.ts'

type Found = Pick<SpecChange<typeof SharedInstance>, 'found' | 'ifMatch'>

/**
 * Raises a counter in an instance's spec by exactly one, whoever else writes meanwhile.
 * @throws ApiError `not_found`; `conflict` when it is being deleted, or is at no version of `ifMatch`; `unavailable`; StoreError
 */
export function raiseVersion(
  store: Store,
  of: Found,
  counter: 'passwordVersion' | 'resetVersion',
): Promise<ChangedSpec<typeof SharedInstance>> {
  return changeSpec(store, SharedInstance, { ...of, specOf: ({ spec }) => ({ [counter]: spec[counter] + 1 }) })
}
