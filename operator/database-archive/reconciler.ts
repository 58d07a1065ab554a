import type { Logger } from 'pino'
import { type Repository, RepositoryCode } from '../../backup/repository/port.ts'
import { ArchiveReason, DatabaseArchive } from '../../crds/database-archive.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { FINALIZER } from '../../crds/names.ts'
import { MooringError } from '../../shared/errors.ts'
import type { Cache } from '../../store/cache.ts'
import { notReady } from '../../store/conditions.ts'
import { ignoringGone, keyOf, keyToString, type Key, type Store } from '../../store/port.ts'
import { archiveKeyOf, keptPatch } from '../dedicated-database/backups.ts'
import { type Report, type StatusFields, stepDone } from '../reporter.ts'
import type { Outcome } from '../runtime/controller.ts'
import { type Action, type Observed, orderOf, type Plan, planArchive } from './plan.ts'
import { readDocuments, removeObjects, writeOrder } from './repository-documents.ts'

export interface ArchiveReconcilerDeps {
  readonly store: Store
  readonly archives: Cache<typeof DatabaseArchive>
  /** Databases, with the index `archive`. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly repository: Repository
  /** Whether the Namespace of the archives is being deleted. Default: it is not. */
  readonly isNamespaceGoing?: (() => boolean) | undefined
  readonly report: Report
  readonly now: () => Date
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/** Time limit in ms of one read of the documents. */
const READ_MS = 10_000
/** Time limit in ms of one attempt to remove all objects. */
const REMOVE_MS = 120_000
/** Delay in ms after which an action that failed in the repository is repeated. */
const RETRY_MS = 2_000

/** Creates the reconciler that writes the orders of agents, copies their states to the status, and removes the backups of deleted archives. */
export function createArchiveReconciler(deps: ArchiveReconcilerDeps): (key: Key) => Promise<Outcome> {
  const { store, archives, repository, report } = deps

  async function observe(archive: DatabaseArchive): Promise<Observed> {
    return {
      archive,
      hasDatabase: await hasDatabase(archive),
      documents: await documentsOf(archive),
      isNamespaceGoing: deps.isNamespaceGoing?.(),
      now: deps.now(),
    }
  }

  /** The cache may lag behind and lack a new database, so an archive counts as orphaned only after a list of the store. */
  async function hasDatabase({ spec, metadata }: DatabaseArchive): Promise<boolean> {
    const isOwner = (database: DedicatedDatabase): boolean => database.metadata.uid === spec.databaseUid
    if (deps.databases.byIndex('archive', metadata.name).some(isOwner)) return true
    return (await store.list(DedicatedDatabase)).items.some(isOwner)
  }

  async function documentsOf({ metadata, spec }: DatabaseArchive): Promise<Observed['documents']> {
    if (metadata.deletionTimestamp !== undefined) return undefined
    try {
      return await readDocuments(repository, spec.databaseUid, AbortSignal.timeout(READ_MS))
    } catch (error) {
      return { error: messageOf(error) }
    }
  }

  async function perform(archive: DatabaseArchive, action: Action): Promise<void> {
    const { metadata, spec } = archive
    const { uid, finalizers = [] } = metadata
    const about = { archive: metadata.name, database: spec.database }
    const setFinalizers = (all: readonly string[]) =>
      store.mergePatch(DatabaseArchive, metadata, { metadata: { finalizers: all } }, { uid })
    switch (action) {
      case 'add-finalizer':
        await setFinalizers([...finalizers, FINALIZER])
        return
      case 'order':
        await writeOrder(repository, spec.databaseUid, orderOf(archive))
        return
      case 'keep':
        await store.mergePatch(DatabaseArchive, metadata, keptPatch(archive, deps.now()), { uid })
        return
      case 'delete':
        await store.delete(DatabaseArchive, metadata, { uid })
        return
      case 'remove-objects':
        await removeObjects(repository, spec.databaseUid, AbortSignal.timeout(REMOVE_MS))
        deps.log.info(about, 'backups of a database removed')
        return
      case 'leave-objects':
        deps.log.warn(about, 'the Namespace of a database’s backups is being deleted: they stay in the repository')
        return
      case 'release':
        await setFinalizers(finalizers.filter((name) => name !== FINALIZER))
    }
  }

  async function apply(archive: DatabaseArchive, actions: readonly Action[]): Promise<void> {
    for (const action of actions) {
      await ignoringGone(perform(archive, action))
      stepDone(`archive.${action}`, keyToString(keyOf(archive)))
    }
  }

  /** Reports that the repository failed during an action. The reconcile is repeated. */
  async function reportFailure(archive: DatabaseArchive, error: MooringError): Promise<Outcome> {
    const reason = error.code === RepositoryCode.full ? ArchiveReason.RepositoryFull : ArchiveReason.RepositoryUnavailable
    const current = await store.get(DatabaseArchive, archive.metadata)
    if (current?.metadata.uid === archive.metadata.uid) await report(DatabaseArchive, current, notReady(reason, error.message))
    return { result: 'waiting', reason, requeueAfterMs: RETRY_MS }
  }

  return async function reconcileArchive(key) {
    const archive = archives.get(key)
    if (archive?.metadata.name !== archiveKeyOf(archive?.spec.databaseUid ?? '').name)
      return { result: 'settled', reason: 'Gone' }
    const plan = planArchive(await observe(archive))
    try {
      await apply(archive, plan.actions)
    } catch (error) {
      if (error instanceof MooringError && REPOSITORY_CODES.has(error.code)) return reportFailure(archive, error)
      throw error
    }
    if (plan.decision) await report(DatabaseArchive, archive, plan.decision, fieldsToWrite(plan))
    return outcomeOf(plan)
  }
}

const REPOSITORY_CODES: ReadonlySet<string> = new Set(Object.values(RepositoryCode))

/** Message of an error of the repository; other errors stay in the log alone. */
const messageOf = (error: unknown): string =>
  error instanceof MooringError ? error.message : 'the repository does not answer in time'

/** A field that the state lacks is removed from the status. */
function fieldsToWrite({ fields }: Plan): StatusFields<typeof DatabaseArchive> {
  if (Object.keys(fields).length === 0) return {}
  const { restoreWindow = null, lastVerifiedRestore = null, drillReport = null, drillError = null, archivedAt = null } = fields
  return { ...fields, restoreWindow, lastVerifiedRestore, drillReport, drillError, archivedAt }
}

function outcomeOf({ decision, requeueAfterMs }: Plan): Outcome {
  const isSettled = decision === undefined || decision.status === 'True'
  return { result: isSettled ? 'settled' : 'waiting', reason: decision?.reason ?? ArchiveReason.Deleting, requeueAfterMs }
}
