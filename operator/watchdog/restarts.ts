import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import { DatabaseServer, FORCED_RESTART, ServerReason } from '../../crds/database-server.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import { SharedInstance } from '../../crds/shared-instance.ts'
import type { Cache } from '../../store/cache.ts'
import { conditionOf, ready } from '../../store/conditions.ts'
import type { Store } from '../../store/port.ts'
import type { Events } from '../events/events.ts'
import type { ServerRuntime } from '../server/runtime.ts'
import { instanceNamed } from '../shared-instance/indexes.ts'
import { begun, writeConditions } from './server-conditions.ts'
import { createSuspensionPeriods } from './suspension-periods.ts'

/** Minimum time between two forced restarts of one server, in ms: a restart ends the sessions of all its tenants. */
export const RESTART_INTERVAL_MS = 600_000

export interface RestartsDeps {
  readonly store: Pick<Store, 'patchStatus'>
  readonly servers: Cache<typeof DatabaseServer>
  /** Instances, with the indexes `server` and `suffix`. */
  readonly instances: Cache<typeof SharedInstance>
  readonly runtime: Pick<ServerRuntime, 'restart'>
  readonly events: Events
  readonly log: Pick<Logger, 'warn'>
  readonly registry: Registry
  readonly now: () => Date
}

/** Reason of the event about a statement that could not be ended, whether the server was restarted or not. */
export const STATEMENT_STUCK = ServerReason.StatementStuck

/** Forced restarts of servers with a statement that cannot be ended and that blocks other work. One mechanism for all engines and runtimes. */
export interface Restarts {
  /**
   * Restarts a server, given by its object name, at most once in {@link RESTART_INTERVAL_MS}. A condition of the DatabaseServer has the time of the
   * last restart, so that a restart of the operator does not shorten the interval. Events notify the administrator and the tenants. `culprits`:
   * tenants whose statements made it necessary, which stay suspended for a while.
   * @returns false when the server is missing, being deleted, changed meanwhile or restarted recently
   * @throws errors of the runtime: the server was not restarted, and the interval has begun
   */
  request(server: string, culprits: readonly string[]): Promise<boolean>
}

export function createRestarts({ store, servers, instances, runtime, events, log, registry, now }: RestartsDeps): Restarts {
  const restarts = new Counter({
    name: 'mooring_database_server_forced_restarts_total',
    help: 'Restarts of database servers with a statement that could not be ended.',
    registers: [registry],
  })
  /** Time of the last restart by this process, in ms since the epoch, by uid of the server: the cache may not show it yet. */
  const last = new Map<string, number>()

  const suspend = createSuspensionPeriods({ store, ownerOf: (name) => instanceNamed(instances, name), now })

  function isDue(server: DatabaseServer): boolean {
    const recorded = Date.parse(conditionOf(server, FORCED_RESTART)?.lastTransitionTime ?? '') || 0
    return now().getTime() - Math.max(recorded, last.get(server.metadata.uid) ?? 0) >= RESTART_INTERVAL_MS
  }

  /** Records the restart before it happens. @returns false when the server has changed meanwhile */
  const record = (server: DatabaseServer, message: string): Promise<boolean> => {
    const decision = ready(ServerReason.StatementStuck, message)
    return writeConditions(store, server, begun(server, decision, { type: FORCED_RESTART, now: now() }))
  }

  return {
    async request(name, culprits) {
      const server = servers.get({ namespace: SHARED_NAMESPACE, name })
      if (server?.metadata.deletionTimestamp !== undefined || !server || !isDue(server)) return false
      const message = 'forced restart: a statement of a tenant could not be ended and blocked other work'
      if (!(await record(server, message))) return false
      last.set(server.metadata.uid, now().getTime())
      // A failure must not prevent the restart: the interval has begun.
      await suspend(culprits).catch((error: unknown) => log.warn({ server: name, err: error }, 'tenants not suspended'))
      await runtime.restart(server)
      restarts.inc()
      log.warn({ server: name }, 'database server restarted because of a statement that cannot be ended')
      events.failure({ kind: DatabaseServer, metadata: server.metadata, reason: STATEMENT_STUCK, note: message })
      const note =
        'its database server was restarted, which ended all sessions: a statement in a database there could not be ended'
      for (const { metadata } of instances.byIndex('server', name))
        events.failure({ kind: SharedInstance, metadata, reason: 'ServerRestarted', note })
      return true
    },
  }
}
