import type { DatabaseServer } from '../../crds/database-server.ts'
import { isReady } from '../../store/conditions.ts'
import type { ServerState } from './runtime.ts'

/** Time for a server to be observed after the operator's start, before a status from before the start is taken back. */
const GRACE_MS = 15_000

export interface FirstObservation {
  readonly isUnknown: (server: DatabaseServer, state: ServerState) => boolean
  /** Forgets a deleted server. */
  readonly forget: (server: DatabaseServer) => void
}

/**
 * Detects servers that were ready before this process started and have not been observed since. A runtime reports `starting` until its
 * first observation; written to the status at once, that would change every instance of every server twice at each restart of the operator,
 * which restarts no server.
 */
export function createFirstObservation(now: () => Date): FirstObservation {
  /** End of the wait for the first observation, by uid of the server; 0 after the observation. */
  const deadlines = new Map<string, number>()

  return {
    isUnknown(server, state) {
      const { uid } = server.metadata
      const at = now().getTime()
      const deadline = deadlines.get(uid) ?? at + GRACE_MS
      const unknown = state.phase === 'starting' && isReady(server) && at < deadline
      deadlines.set(uid, unknown ? deadline : 0)
      return unknown
    },
    forget: ({ metadata }) => void deadlines.delete(metadata.uid),
  }
}
