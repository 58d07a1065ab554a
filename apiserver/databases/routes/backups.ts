import { z } from 'zod'
import type { DatabaseArchive } from '../../../crds/database-archive.ts'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { restoreWindowsOf } from '../../../shared/restorable-moment.ts'
import { ApiError } from '../../http/errors.ts'
import { page, PageQuery } from '../../http/paging.ts'
import { type AnyRoute, type Principal, route } from '../../http/route.ts'
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

/** `GET /v1/databases/{id}/backups`: the base backups of a database, or of a deleted one whose backups are kept. */
export function listBackups({ archives, namespaces, find, scopes, catchUp }: DatabaseDeps): AnyRoute {
  /** Returns the archive of a deleted database. @throws ApiError as `find` does, unless the caller may read it */
  async function keptArchive(principal: Principal, id: string): Promise<DatabaseArchive | undefined> {
    const archive = archiveOf(archives, id)
    const namespace = archive?.spec.namespace
    const isKept = archive?.spec.keptUntil !== undefined && hasNamespace({ namespaces }, archive)
    if (isKept && (await scopes.may(principal, { verb: 'get', resource: 'dedicateddatabases', namespace }))) return archive
    await find(principal, id)
    return archive
  }

  return route({
    method: 'get',
    path: BACKUPS_PATH,
    on: ['dedicated'],
    id: 'listBackups',
    summary: 'List the backups of a database, newest first, with its restore window.',
    description: 'Also for a deleted database whose backups are kept: `keptUntil` is the time at which they are removed.',
    params: DatabaseParams,
    query: z.object(PageQuery),
    replies: { 200: Backups },
    async handle({ principal, params, query }) {
      await catchUp(archives, () => archiveOf(archives, params.id))
      return { status: 200, data: answerOf(await keptArchive(principal, params.id), query) }
    },
  })
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

const withoutRecovery = (): ApiError =>
  new ApiError(
    'conflict',
    'this database has no point-in-time recovery; add pointInTimeRecovery by a PATCH, then repeat the request',
  )
