import { DatabaseServer, OUT_OF_MEMORY as CONDITION, ServerReason } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { ready } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Events } from '../events/events.ts'
import { begun, writeConditions } from './server-conditions.ts'

/** Reason of the events about a server that ended for lack of memory, and about the tenants that were suspended for it. */
export const OUT_OF_MEMORY = ServerReason.OutOfMemory

export interface MemoryAlarmDeps {
  readonly store: Pick<Store, 'patchStatus'>
  readonly servers: Cache<typeof DatabaseServer>
  readonly events: Events
  readonly now: () => Date
}

/** Creates the reporter of a server, given by its object name, that ended for lack of memory: a condition of the DatabaseServer, and an Event. */
export function createMemoryAlarm({ store, servers, events, now }: MemoryAlarmDeps) {
  return async function onOutOfMemory(name: string, databases: readonly string[]): Promise<void> {
    const server = servers.get({ namespace: SHARED_NAMESPACE, name })
    if (!server) return
    const message = `it ended for lack of memory while operations of these databases ran, which are suspended for ten minutes: ${databases.join(', ')}`
    events.failure({ kind: DatabaseServer, metadata: server.metadata, reason: OUT_OF_MEMORY, note: message })
    const decision = ready(ServerReason.OutOfMemory, message)
    // The Event has told it where the condition cannot be written.
    await writeConditions(store, server, begun(server, decision, { type: CONDITION, now: now() }))
  }
}
