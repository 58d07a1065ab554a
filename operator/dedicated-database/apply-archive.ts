import { DatabaseArchive } from '../../crds/database-archive.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { ignoringGone, isStoreError, type Patch, type Store } from '../../store/port.ts'
import { type ArchiveAction, archiveOf, type ArchiveOwner, archivePatch, keptPatch } from './backups.ts'

interface ArchiveApplyDeps {
  readonly store: Store
  readonly now: () => Date
}

/** Observed state that the actions on an archive need. */
interface Situation {
  readonly database: DedicatedDatabase
  readonly archive: DatabaseArchive | undefined
  readonly organization: string | undefined
  readonly namespaceUid: string | undefined
}

export const isOfArchive = (action: string): action is ArchiveAction => action.endsWith('archive')

/** Carries out an action on the archive of a database. An archive that is gone already counts as changed. */
export async function applyToArchive(deps: ArchiveApplyDeps, situation: Situation, action: ArchiveAction): Promise<void> {
  const { store } = deps
  const { database, archive, organization = '', namespaceUid = '' } = situation
  if (!archive) {
    if (action === 'archive') await createArchive(store, database, { organization, namespaceUid })
    return
  }
  const exactly = { uid: archive.metadata.uid }
  const patch = (change: Patch) => store.mergePatch(DatabaseArchive, archive.metadata, change, exactly)
  const steps: Readonly<Record<ArchiveAction, () => Promise<unknown>>> = {
    archive: () => patch(archivePatch(database)),
    'keep-archive': () => patch(keptPatch(archive, deps.now())),
    'delete-archive': () => store.delete(DatabaseArchive, archive.metadata, exactly),
  }
  await ignoringGone(steps[action]())
}

async function createArchive(store: Store, database: DedicatedDatabase, owner: ArchiveOwner): Promise<void> {
  const draft = archiveOf(database, owner)
  try {
    await store.create(DatabaseArchive, draft)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    await store.mergePatch(DatabaseArchive, draft.metadata, archivePatch(database))
  }
}
