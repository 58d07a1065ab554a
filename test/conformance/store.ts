import { describe } from 'vitest'
import { changeClauses } from './store/changes.ts'
import { deletionClauses } from './store/deletion.ts'
import { ruleClauses } from './store/rules.ts'
import type { Open } from './store/test-store.ts'
import { watchClauses } from './store/watches.ts'
import { writeClauses } from './store/writes.ts'

/**
 * Contract of the Store port: Kubernetes' semantics, one test for each clause, the same for every implementation. Other tests may
 * use the store at the same time. It needs the kinds of crds/index.ts, and no running operator.
 */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    writeClauses(open)
    changeClauses(open)
    watchClauses(open)
    deletionClauses(open)
    ruleClauses(open)
  })
}
