import { isDeepStrictEqual } from 'node:util'
import { type DatabaseServer, ServerReason, UPDATE_HELD } from '../../crds/database-server.ts'
import type { DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { conditionOf, isReady } from '../../store/conditions.ts'
import type { ServerAddress } from '../shared-instance/password-steps.ts'

/**
 * Returns the storage in GiB that the server's volume has or grows to, which the status of the database shows only once it runs. A volume that
 * cannot grow counts 0: the database may return to its former plan.
 */
export function requestedGiB(server: DatabaseServer | undefined): number {
  const cannotGrow = conditionOf(server ?? {}, UPDATE_HELD)?.reason === ServerReason.StorageNotExpandable
  return cannotGrow ? 0 : (server?.spec.size?.storageGiB ?? 0)
}

/** Whether the status shows the present spec in force, with the present size and address of the server. */
export function isSettled(database: DedicatedDatabase, { status, spec }: DatabaseServer): boolean {
  const { metadata, status: own } = database
  if (!isReady(database) || own?.observedGeneration !== metadata.generation) return false
  if (own.plan !== database.spec.plan || own.storageGiB !== spec.size?.storageGiB) return false
  return isDeepStrictEqual(reachedAt(own), reachedAt(status))
}

type Address = Pick<NonNullable<DatabaseServer['status']>, 'host' | 'port' | 'internalHost' | 'tls'>

const reachedAt = ({ host, port, internalHost, tls }: Address = {}) => [host, port, internalHost, tls]

/** Returns the address at which a server can be reached, once it has one. */
export function addressIn({ status }: DatabaseServer): ServerAddress | undefined {
  const { host, port, tls } = status ?? {}
  return host === undefined || port === undefined ? undefined : { host, port, tls }
}

/** Whether a server runs with its present spec. */
export const isInForce = (server: DatabaseServer): boolean =>
  isReady(server) && isObserved(server) && conditionOf(server, UPDATE_HELD) === undefined

/** Whether the status of a server is about its present spec. */
export const isObserved = ({ metadata, status }: DatabaseServer): boolean => status?.observedGeneration === metadata.generation
