import { ServerReason } from '../../crds/database-server.ts'
import { notReady, ready, type Decision } from '../../store/conditions.ts'
import type { ServerState } from './runtime.ts'

/** Ready condition of a server in a state. Pure. */
export function serverDecision(state: ServerState, engineVersion: string | undefined): Decision {
  switch (state.phase) {
    case 'running':
      return ready(ServerReason.Running, `the server reports version ${engineVersion ?? 'unknown'}`)
    case 'failed':
      return notReady(state.reason, state.message)
    case 'absent':
      return notReady(ServerReason.Starting, 'the server is starting')
    case 'starting':
      return notReady(ServerReason.Starting, state.message ?? 'the server is starting')
  }
}
