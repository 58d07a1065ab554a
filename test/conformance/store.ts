import { describe } from 'vitest'
import { changeClauses } from './store/changes.ts'
import { deletionClauses } from './store/deletion.ts'
import type { Open } from './store/place.ts'
import { watchClauses } from './store/watches.ts'
import { writeClauses } from './store/writes.ts'

/**
 * Kubernetes’ semantics as the Store port promises them, one test a clause: the same for every implementation. The store may be in
 * use by others at the same time; it needs the kinds of crds/index.ts, and no operator at work on them.
 */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    writeClauses(open)
    changeClauses(open)
    watchClauses(open)
    deletionClauses(open)
  })
}
