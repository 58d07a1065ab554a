import { describe } from 'vitest'
import { failureClauses } from './repository/failures.ts'
import { listClauses } from './repository/lists.ts'
import { objectClauses } from './repository/objects.ts'
import type { Open } from './repository/test-repository.ts'

/** Contract of the Repository port, one test for each clause, the same for every implementation. */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    objectClauses(open)
    listClauses(open)
    failureClauses(open)
  })
}
