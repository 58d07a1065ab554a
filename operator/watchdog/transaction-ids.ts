import type { Registry } from 'prom-client'
import { Gauge } from 'prom-client'
import { DatabaseServer, ServerReason, TRANSACTION_IDS_LOW } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf, ready, withCondition, withoutCondition } from '../../store/conditions.ts'
import { isStoreError } from '../../store/errors.ts'
import { keyOf } from '../../store/key-string.ts'
import type { Store } from '../../store/port.ts'

export interface TransactionIdsDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  readonly registry: Registry
  readonly now: () => Date
}

/** Used share of the transaction ids at which the condition is set, and below which it is removed. */
const LOW = 0.5
const ENOUGH = 0.4

/**
 * Creates the reporter of each server's used transaction ids: a gauge and, above half, a condition of the DatabaseServer, which becomes an
 * Event. Half is days before the server stops, even with a tenant that uses them as fast as possible.
 */
export function createTransactionIdAlarm({ store, servers, registry, now }: TransactionIdsDeps) {
  const byServer = new Map<string, number>()
  new Gauge({
    name: 'mooring_database_transaction_ids_used_ratio',
    help: 'Highest share of its transaction ids that a database server has used; a server stops at 1.',
    registers: [registry],
    collect() {
      this.set(Math.max(0, ...byServer.values()))
    },
  })

  return async function onTransactionIds(name: string, used: number): Promise<void> {
    const server = servers.get({ namespace: SHARED_NAMESPACE, name })
    if (!server) {
      byServer.delete(name)
      return
    }
    byServer.set(name, used)
    const isSet = conditionOf(server, TRANSACTION_IDS_LOW) !== undefined
    if (used >= LOW === isSet || (isSet && used >= ENOUGH)) return
    const message = `${Math.round(used * 100)} % of the transaction ids are used up: end sessions that keep old tables locked, and vacuum`
    const stamp = { type: TRANSACTION_IDS_LOW, generation: server.metadata.generation, now: now() }
    const before = server.status?.conditions
    const conditions = isSet
      ? withoutCondition(before, TRANSACTION_IDS_LOW)
      : withCondition(before, ready(ServerReason.Wraparound, message), stamp)
    const { uid, resourceVersion } = server.metadata
    try {
      await store.patchStatus(DatabaseServer, keyOf(server), { conditions }, { uid, resourceVersion })
    } catch (error) {
      // The next sweep sets the condition.
      if (!isStoreError(error, 'conflict') && !isStoreError(error, 'not_found')) throw error
    }
  }
}
