import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import type { Quota } from '../quota/quota.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { createDatabaseReconciler, type DatabaseReconcilerDeps } from './reconciler.ts'
import { createUnownedServerReconciler, unownedServerWatches, type UnownedServersDeps } from './unowned-servers.ts'
import { databaseWatches } from './watches.ts'
import type { Watchdog } from '../watchdog/watchdog.ts'
import type { Admins } from '../server/admins.ts'

export interface DatabaseControllerDeps extends DatabaseReconcilerDeps, UnownedServersDeps {
  readonly admins: Admins
  readonly quota: Quota<DedicatedDatabase>
  readonly watchdog: Pick<Watchdog, 'onSuspicion'>
  /** Absent in an installation without a repository of backups. */
  readonly backups?: { readonly grants: RestoreGrants } | undefined
  readonly onFailure: ControllerDeps['onFailure']
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller
}

/** Maximum number of databases that are reconciled at the same time. A reconcile spends most of its time in an engine. */
const CONCURRENCY = 32

/** Creates the controllers of dedicated databases, and of servers that have lost their database. */
export function createDatabaseControllers(deps: DatabaseControllerDeps): readonly Controller[] {
  return [
    deps.controller({
      name: 'dedicated-database',
      concurrency: CONCURRENCY,
      onFailure: deps.onFailure,
      reconcile: createDatabaseReconciler({ ...deps, restoreGrants: deps.backups?.grants }),
      sources: databaseWatches({ ...deps, onSuspicion: (wake) => deps.watchdog.onSuspicion(DedicatedDatabase, wake) }),
    }),
    deps.controller({
      name: 'unowned-server',
      concurrency: 1,
      reconcile: createUnownedServerReconciler(deps),
      sources: unownedServerWatches(deps),
    }),
  ]
}
