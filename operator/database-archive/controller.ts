import type { Repository } from '../../backup/repository/port.ts'
import type { Namespace } from '../../crds/core.ts'
import type { RestoreGrants } from '../../shared/restore-grants.ts'
import type { Cache } from '../../store/cache.ts'
import { keyOf } from '../../store/port.ts'
import type { Controller, ControllerDeps } from '../runtime/controller.ts'
import { aspectChangesOf, changesOf, objectsOf } from '../runtime/source.ts'
import { archiveKeyOf } from '../dedicated-database/backups.ts'
import { type ArchiveReconcilerDeps, createArchiveReconciler } from './reconciler.ts'

export interface ArchiveControllerDeps extends ArchiveReconcilerDeps {
  readonly controller: (about: Pick<ControllerDeps, 'name' | 'concurrency' | 'reconcile' | 'sources' | 'onFailure'>) => Controller
  readonly onFailure: ControllerDeps['onFailure']
  /** Namespaces, whose deletion `isNamespaceGoing` shows. */
  readonly namespaces?: Cache<typeof Namespace> | undefined
}

/** Repository of backups, and grants of restores. */
export interface BackupsDeps {
  readonly repository: Repository
  readonly grants: RestoreGrants
}

/** Maximum number of archives that are reconciled at the same time. A reconcile spends its time in the repository. */
const CONCURRENCY = 16

/** Creates the controller of archives; none in an installation without a repository. */
export function createArchiveControllers(
  backups: BackupsDeps | undefined,
  deps: Omit<ArchiveControllerDeps, 'repository'>,
): readonly Controller[] {
  return backups ? [createArchiveController({ ...deps, repository: backups.repository })] : []
}

function createArchiveController(deps: ArchiveControllerDeps): Controller {
  const { archives, databases } = deps
  const ownerless = () =>
    archives
      .list()
      .filter(({ spec, metadata }) => {
        const owners = databases.byIndex('archive', metadata.name)
        return !owners.some((database) => archiveKeyOf(database.metadata.uid).name === archiveKeyOf(spec.databaseUid).name)
      })
      .map(keyOf)
  const goingArchives = () =>
    archives
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(keyOf)
  return deps.controller({
    name: 'database-archive',
    concurrency: CONCURRENCY,
    onFailure: deps.onFailure,
    reconcile: createArchiveReconciler(deps),
    sources: [
      objectsOf(archives),
      aspectChangesOf(databases, ({ metadata }) => metadata.uid, ownerless),
      ...(deps.namespaces ? [changesOf(deps.namespaces, goingArchives)] : []),
    ],
  })
}
