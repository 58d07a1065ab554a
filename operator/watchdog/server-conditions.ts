import { DatabaseServer } from '../../crds/database-server.ts'
import type { Condition } from '../../crds/kind.ts'
import { type Decision, withCondition, withoutCondition } from '../../store/conditions.ts'
import { isStoreError, keyOf, type Store } from '../../store/port.ts'

/** Returns the conditions of a server with one of this type that begins now. Pure. */
export function begun(
  { status, metadata: { generation } }: DatabaseServer,
  decision: Decision,
  { type, now }: { readonly type: string; readonly now: Date },
): readonly Condition[] {
  // A condition keeps its time while its status stays the same.
  return withCondition(withoutCondition(status?.conditions, type), decision, { type, generation, now })
}

/** Writes the conditions of a server. @returns false when it has changed since it was read */
export async function writeConditions(
  store: Pick<Store, 'patchStatus'>,
  server: DatabaseServer,
  conditions: readonly Condition[],
): Promise<boolean> {
  const { uid, resourceVersion } = server.metadata
  try {
    await store.patchStatus(DatabaseServer, keyOf(server), { conditions }, { uid, resourceVersion })
    return true
  } catch (error) {
    if (isStoreError(error, 'conflict') || isStoreError(error, 'not_found')) return false
    throw error
  }
}
