import { describe } from 'vitest'
import { eventClauses } from './journal/events.ts'
import type { Open } from './journal/place.ts'
import { requestClauses } from './journal/requests.ts'
import { statsClauses } from './journal/stats.ts'

/** What the Journal port promises, one test a clause: the same for every implementation. The journal may be in use by others. */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    requestClauses(open)
    statsClauses(open)
    eventClauses(open)
  })
}
