import { describe } from 'vitest'
import { eventClauses } from './conformance/events.ts'
import type { Open } from './conformance/place.ts'
import { requestClauses } from './conformance/requests.ts'
import { statsClauses } from './conformance/stats.ts'

/** What the Journal port promises, one test a clause: the same for every implementation. The journal may be in use by others. */
export function conformance(name: string, open: Open): void {
  describe(name, () => {
    requestClauses(open)
    statsClauses(open)
    eventClauses(open)
  })
}
