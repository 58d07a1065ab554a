import type { Logger } from 'pino'
import { DatabaseServer } from '../../crds/database-server.ts'
import { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { SHARED_NAMESPACE } from '../../crds/names.ts'
import type { Cache } from '../../store/cache.ts'
import { ignoringGone, keyOf, type Key, type Store } from '../../store/port.ts'
import type { Outcome } from '../runtime/controller.ts'
import { aspectChangesOf, objectsOf, type Source } from '../runtime/source.ts'
import { isServerName, serverNameOf } from './resources.ts'

export interface UnownedServersDeps {
  readonly store: Store
  readonly servers: Cache<typeof DatabaseServer>
  /** Databases, with the indexes of indexes.ts. */
  readonly databases: Cache<typeof DedicatedDatabase>
  readonly log: Pick<Logger, 'warn'>
}

const settled = (reason: string): Outcome => ({ result: 'settled', reason })

/**
 * Creates the reconciler that deletes dedicated servers without a database. The finalizer of a database normally ensures that its server goes
 * first. A client that may edit the database can remove the finalizer, and its server would then stay for ever, outside every quota.
 */
export function createUnownedServerReconciler({ store, servers, databases, log }: UnownedServersDeps) {
  return async function reconcileServer(key: Key): Promise<Outcome> {
    const server = servers.get(key)
    if (!server) return settled('Gone')
    if (!isOfDatabase(server)) return settled('NotDedicated')
    if (server.metadata.deletionTimestamp !== undefined) return settled('Stopping')
    if (hasOwner(databases, server)) return settled('Owned')
    // The cache may lag behind. A server is created after its database, so a list made after the server was seen contains the database.
    const { items } = await store.list(DedicatedDatabase)
    if (items.some(({ metadata }) => serverNameOf(metadata.uid) === server.metadata.name)) return settled('Owned')
    await remove(server)
    log.warn({ server: server.metadata.name }, 'deleted a database server that belongs to no database')
    return settled('Unowned')
  }

  async function remove({ metadata }: DatabaseServer): Promise<void> {
    await ignoringGone(store.delete(DatabaseServer, metadata, { uid: metadata.uid }))
  }
}

/** Whether a server has the tenancy and the name that {@link serverNameOf} gives. Servers that an administrator named stay. */
const isOfDatabase = ({ metadata, spec }: DatabaseServer): boolean =>
  spec.tenancy === 'dedicated' && metadata.namespace === SHARED_NAMESPACE && isServerName(metadata.name)

const hasOwner = (databases: UnownedServersDeps['databases'], { metadata }: DatabaseServer): boolean =>
  databases.countByIndex('everyServer', metadata.name) > 0

/** Sources of that reconciler. The key of a deleted database does not tell its server, so each server without a database is reconciled. */
export function unownedServerWatches({
  servers,
  databases,
}: Pick<UnownedServersDeps, 'servers' | 'databases'>): readonly Source[] {
  const unowned = (): readonly Key[] =>
    servers
      .list()
      .filter((server) => isOfDatabase(server) && !hasOwner(databases, server))
      .map(keyOf)
  return [objectsOf(servers), aspectChangesOf(databases, ({ metadata }) => metadata.uid, unowned)]
}
