import { z } from 'zod'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { annotations } from '../../../crds/names.ts'
import { type AnyRoute, route } from '../../http/route.ts'
import { withinBudget } from '../../resources/cache-waits.ts'
import { type IfMatch, requestDeletion, requireExpected } from '../../resources/conditional-writes.ts'
import { noBackups } from '../database-body.ts'
import { DATABASE_PATH, DatabaseData, type DatabaseDeps, DatabaseParams, SEEN_MS } from '../database-deps.ts'

const NEEDS = [{ verb: 'delete', resource: 'dedicateddatabases' }] as const

const DeleteQuery = z.object({
  keepBackups: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      'Whether its backups outlive the database for their retention. 422 `unsupported_addon` for a database without them.',
    ),
})

interface Deletion {
  readonly ifMatch: IfMatch | undefined
  readonly isKept: boolean
}

/** `DELETE /v1/databases/{id}`: 202 at once, also when it is repeated while the deletion is in progress; 404 after that. */
export function deleteDatabase({ store, databases, audit, find, answer, now }: DatabaseDeps): AnyRoute {
  return route({
    method: 'delete',
    path: DATABASE_PATH,
    on: ['dedicated'],
    id: 'deleteDatabase',
    summary: 'Delete a database with its server and all its data, permanently.',
    description:
      '202 with `status: "deleting"` at once. Read the database until the answer is 404: the operator has then verified that server and data are gone.',
    conditional: true,
    params: DatabaseParams,
    query: DeleteQuery,
    replies: { 202: DatabaseData },
    async handle({ principal, params, query, ifMatch, requestId, sourceIp }) {
      const database = await find(principal, params.id, NEEDS)
      if (query.keepBackups === 'true' && !database.spec.pointInTimeRecovery) throw noBackups()
      if (await startDeletion(database, { ifMatch, isKept: query.keepBackups === 'true' })) {
        await audit.record({ principal, requestId, sourceIp, action: 'delete', before: database })
      }
      return answer.plain(202, (await seenDeleting(database)) ?? markedDeleting(database))
    },
  })

  /**
   * Writes into the database whether its backups stay, and starts its deletion. A mark that an interrupted request has left does not count.
   * @returns as `requestDeletion`
   */
  async function startDeletion(found: DedicatedDatabase, { ifMatch, isKept }: Deletion): Promise<boolean> {
    const now = await store.get(DedicatedDatabase, found.metadata)
    if (now?.metadata.uid !== found.metadata.uid) return false
    const { uid, resourceVersion, deletionTimestamp, annotations: marks } = now.metadata
    const isMarked = marks?.[annotations.keepBackups] === 'true'
    const isDone = isMarked === isKept || (deletionTimestamp !== undefined && !isKept)
    if (isDone) return requestDeletion(store, DedicatedDatabase, now, ifMatch)
    requireExpected(resourceVersion, ifMatch)
    const patch = { metadata: { annotations: { [annotations.keepBackups]: isKept ? 'true' : null } } }
    const marked = await store.mergePatch(DedicatedDatabase, now.metadata, patch, { uid, resourceVersion })
    return requestDeletion(store, DedicatedDatabase, marked, undefined)
  }

  /** Waits at most 2 s until the cache shows the deletion, and returns the database; undefined when it is gone already, or after 2 s. */
  async function seenDeleting({ metadata }: DedicatedDatabase): Promise<DedicatedDatabase | undefined> {
    const check = (seen: DedicatedDatabase | undefined) => {
      if (seen?.metadata.uid !== metadata.uid) return { database: undefined }
      return seen.metadata.deletionTimestamp === undefined ? undefined : { database: seen }
    }
    return (await withinBudget(SEEN_MS, (signal) => databases.waitFor(metadata, check, signal)))?.database
  }

  function markedDeleting(database: DedicatedDatabase): DedicatedDatabase {
    return { ...database, metadata: { ...database.metadata, deletionTimestamp: now().toISOString() } }
  }
}
