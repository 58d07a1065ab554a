import { SharedInstance } from '../crds/shared-instance.ts'
import type { Store } from '../store/port.ts'
import { changeSpec, type ChangedSpec } from './change-spec.ts'

/**
 * Raises a counter in an instance's spec by exactly one, whoever else writes meanwhile.
 * @throws ApiError `not_found`, `conflict` when it is being deleted, `unavailable`; StoreError
 */
export function raiseVersion(
  store: Store,
  found: SharedInstance,
  counter: 'passwordVersion' | 'resetVersion',
): Promise<ChangedSpec<typeof SharedInstance>> {
  return changeSpec(store, SharedInstance, { found, specOf: ({ spec }) => ({ [counter]: spec[counter] + 1 }) })
}
