import { z } from 'zod'
import { DatabaseArchive } from '../../../crds/database-archive.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { apiVersionOf } from '../../../crds/kind.ts'
import { restoreWindowsOf } from '../../../shared/restorable-moment.ts'
import { ApiError } from '../../http/errors.ts'
import { page, PageQuery } from '../../http/paging.ts'
import { type AnyRoute, type Principal, route } from '../../http/route.ts'
import { ignoringGone } from '../../../store/port.ts'
import { changeSpec } from '../../resources/conditional-writes.ts'
import { listOf } from '../../tenancy/tenancy-deps.ts'
import { archiveOf, backupsOf, BackupView, hasNamespace, problemOf } from '../database-backups.ts'
import { DATABASE_PATH, type DatabaseDeps, DatabaseParams, requireNotDeleting, SEEN_MS } from '../database-deps.ts'

const BACKUPS_PATH = `${DATABASE_PATH}/backups`
const NEEDS = [{ verb: 'patch', resource: 'dedicateddatabases' }] as const

const keyOf = ({ startedAt, id }: BackupView) => ({ createdAt: startedAt, id })

const Window = z.object({ earliest: z.iso.datetime(), latest: z.iso.datetime() })

/** What a response says beside the list of backups. */
const About = z.object({
  restoreWindow: Window.nullable().describe('Newest interval whose every moment can be restored.'),
  restoreWindows: z
    .array(Window)
    .describe('All such intervals, oldest first. There are several when a part of the write-ahead log is missing.'),
  problem: z
    .object({ code: z.string(), message: z.string(), since: z.iso.datetime() })
    .nullable()
    .describe('Why archiving or backups fail, as of which time, and what to do. Null while they work.'),
  lastVerifiedRestore: z.iso.datetime().nullable().describe('Time at which a restore drill last succeeded.'),
  drill: z
    .object({ tables: z.int(), rows: z.int(), compared: z.int() })
    .nullable()
    .describe('What that drill read in the restored server, and how many tables it compared with the live database.'),
  drillError: z.string().nullable().describe('Why the last restore drill failed. Null after a success.'),
  keptUntil: z.iso.datetime().nullable().describe('Time at which the backups of a deleted database are removed.'),
})

function resultsOf({ restoreWindow, lastVerifiedRestore, drillReport, drillError }: Status = {}) {
  return {
    restoreWindow: restoreWindow ? { ...restoreWindow } : null,
    lastVerifiedRestore: lastVerifiedRestore ?? null,
    drill: drillReport ? { ...drillReport } : null,
    drillError: drillError ?? null,
  }
}

type Status = NonNullable<DatabaseArchive['status']>

/** Response of both routes. */
const Backups = listOf('backups', BackupView).extend(About.shape)
export type BackupsView = z.output<typeof About> & { readonly backups: readonly BackupView[] }

function answerOf(archive: DatabaseArchive | undefined, query: { readonly limit: number; readonly cursor?: string | undefined }) {
  // A page begins at the end of a list.
  const { items, nextCursor } = page(backupsOf(archive).toReversed(), query, keyOf)
  return {
    backups: [...items],
    nextCursor,
    restoreWindows: archive ? restoreWindowsOf(archive).map((window) => ({ ...window })) : [],
    problem: archive ? problemOf(archive) : null,
    ...resultsOf(archive?.status),
    keptUntil: archive?.spec.keptUntil ?? null,
  }
}

/**
 * Returns the kept archive of a deleted database; undefined for an id without one, and for a caller that may not read databases of its
 * namespace. @throws ApiError `forbidden` for a caller that may read them and is no editor
 */
function createKeptLookup({ archives, namespaces, scopes, catchUp }: DatabaseDeps) {
  return async function findKept(principal: Principal, id: string): Promise<DatabaseArchive | undefined> {
    const archive = await catchUp(archives, () => archiveOf(archives, id))
    if (archive?.spec.keptUntil === undefined || !hasNamespace({ namespaces }, archive)) return undefined
    const { namespace } = archive.spec
    if (!(await scopes.may(principal, { verb: 'get', resource: 'dedicateddatabases', namespace }))) return undefined
    for (const verb of ['create', 'delete'] as const) {
      await scopes.require(principal, { verb, resource: 'dedicateddatabases', namespace })
    }
    return archive
  }
}

/** `GET /v1/databases/{id}/backups`: the base backups of a database, or of a deleted one whose backups are kept. */
export function listBackups(deps: DatabaseDeps): AnyRoute {
  const { archives, find } = deps
  const findKept = createKeptLookup(deps)
  return route({
    method: 'get',
    path: BACKUPS_PATH,
    on: ['dedicated'],
    id: 'listBackups',
    summary: 'List the backups of a database, newest first, with its restore window.',
    description:
      'Also for a deleted database whose backups are kept, for editors of its namespace: `keptUntil` is the time at which they are removed.',
    params: DatabaseParams,
    query: z.object(PageQuery),
    replies: { 200: Backups },
    async handle({ principal, params, query }) {
      const kept = await findKept(principal, params.id)
      if (!kept) await find(principal, params.id)
      return { status: 200, data: answerOf(kept ?? archiveOf(archives, params.id), query) }
    },
  })
}

/** `DELETE /v1/databases/{id}/backups`: removes the kept backups of a deleted database before their retention ends. */
export function deleteBackups(deps: DatabaseDeps): AnyRoute {
  const { store, find, audit } = deps
  const findKept = createKeptLookup(deps)
  return route({
    method: 'delete',
    path: BACKUPS_PATH,
    on: ['dedicated'],
    id: 'deleteBackups',
    summary: 'Remove the kept backups of a deleted database, permanently.',
    description:
      '202 at once, also when it is repeated while the removal is in progress. Read the list until the answer is 404: all objects are then gone from the repository. 409 for a database that exists: removing `pointInTimeRecovery` by a PATCH removes its backups.',
    params: DatabaseParams,
    replies: { 202: Backups },
    async handle({ principal, params, requestId, sourceIp }) {
      const archive = await findKept(principal, params.id)
      if (!archive) {
        await find(principal, params.id, NEEDS)
        throw inUse()
      }
      const { uid, deletionTimestamp } = archive.metadata
      if (deletionTimestamp === undefined) {
        await ignoringGone(store.delete(DatabaseArchive, archive.metadata, { uid }))
        await audit.record({ principal, requestId, sourceIp, action: 'update', ...keptChange(archive) })
      }
      return { status: 202, data: answerOf(archive, { limit: 200 }) }
    },
  })
}

/** Change of the deleted database that the audit log records: its backups are not kept any more. */
function keptChange({ metadata, spec: { databaseUid, database, namespace, keptUntil } }: DatabaseArchive) {
  const about = {
    apiVersion: apiVersionOf(DedicatedDatabase),
    kind: DedicatedDatabase.kind,
    metadata: { ...metadata, uid: databaseUid, name: database, namespace },
  }
  return { before: { ...about, spec: { keptUntil } }, after: { ...about, spec: {} } }
}

/** `POST /v1/databases/{id}/backups`: requests a backup, and responds without waiting for it. */
export function requestBackup({ store, archives, find, audit, until }: DatabaseDeps): AnyRoute {
  return route({
    method: 'post',
    path: BACKUPS_PATH,
    on: ['dedicated'],
    id: 'requestBackup',
    summary: 'Request a backup now; the answer does not wait for it.',
    description:
      'The backup appears in the list with the kind `requested` within seconds. A request while another one is pending changes nothing. 409 without point-in-time recovery.',
    params: DatabaseParams,
    replies: { 202: Backups },
    async handle({ principal, params, requestId, sourceIp }) {
      const found = await find(principal, params.id, NEEDS)
      requireNotDeleting(found)
      const done = archiveOf(archives, found.metadata.uid)?.status?.backupVersion
      const specOf = ({ spec }: DedicatedDatabase) => {
        if (!spec.pointInTimeRecovery) throw withoutRecovery()
        const isPending = done === undefined || spec.backupVersion > done
        return isPending ? {} : { backupVersion: spec.backupVersion + 1 }
      }
      const { before, after, isChanged } = await changeSpec(store, DedicatedDatabase, { found, specOf })
      if (isChanged) await audit.record({ principal, requestId, sourceIp, action: 'update', before, after })
      const { generation } = after.metadata
      await until(after, ({ metadata }) => metadata.generation >= generation, SEEN_MS)
      return { status: 202, data: answerOf(archiveOf(archives, found.metadata.uid), { limit: 200 }) }
    },
  })
}

const inUse = (): ApiError =>
  new ApiError('conflict', 'this database exists; null for pointInTimeRecovery in a PATCH removes the add-on and its backups')

const withoutRecovery = (): ApiError =>
  new ApiError(
    'conflict',
    'this database has no point-in-time recovery; add pointInTimeRecovery by a PATCH, then repeat the request',
  )
