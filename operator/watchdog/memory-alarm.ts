import { DatabaseServer, OUT_OF_MEMORY as CONDITION, ServerReason } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { ready, withCondition, withoutCondition } from '../../store/conditions.ts'
import { isStoreError, keyOf, type Store } from '../../store/port.ts'
import type { Events } from '../events/events.ts'

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
    const { uid, generation } = server.metadata
    events.failure({ kind: DatabaseServer, metadata: server.metadata, reason: OUT_OF_MEMORY, note: message })
    // A condition keeps its time while its status stays the same.
    const others = withoutCondition(server.status?.conditions, CONDITION)
    const conditions = withCondition(others, ready(ServerReason.OutOfMemory, message), {
      type: CONDITION,
      generation,
      now: now(),
    })
    try {
      await store.patchStatus(
        DatabaseServer,
        keyOf(server),
        { conditions },
        { uid, resourceVersion: server.metadata.resourceVersion },
      )
    } catch (error) {
      // The Events have told it.
      if (!isStoreError(error, 'conflict') && !isStoreError(error, 'not_found')) throw error
    }
  }
}
