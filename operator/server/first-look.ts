import type { DatabaseServer } from '../../crds/database-server.ts'
import { isReady } from '../../store/conditions.ts'
import type { ServerState } from './runtime.ts'

/** How long a server may take to come up, or to be found up, before a status from before our own start is taken back. */
const GRACE_MS = 15_000

export interface FirstLook {
  readonly isUnknown: (server: DatabaseServer, state: ServerState) => boolean
  /** The server is gone. */
  readonly forget: (server: DatabaseServer) => void
}

/**
 * Tells whether a server that its status calls ready has not been found out about since this process started. A runtime says `starting`
 * until it has looked; to write that down at once would have every instance of every server change twice at each restart of the operator,
 * which restarts no server.
 */
export function createFirstLook(now: () => Date): FirstLook {
  /** By uid: when the first look may take no longer; 0 once it is over. */
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
