import { describe } from 'vitest'
import { eventClauses } from './journal/events.ts'
import type { Open } from './journal/test-journal.ts'
import { requestClauses } from './journal/requests.ts'
import { statsClauses } from './journal/stats.ts'

/**
 * Contract of the Journal port, one test for each clause, the same for every implementation. Other tests may use the journal at
 * the same time.
 */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    requestClauses(open)
    statsClauses(open)
    eventClauses(open)
  })
}
