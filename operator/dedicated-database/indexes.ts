import { DatabaseReason, type DedicatedDatabase } from '../../crds/dedicated-database.ts'
import { isOverQuota, quotaIndexes } from '../quota/quota.ts'
import { tenantSuffix } from '../shared-instance/kept-secret.ts'
import { archiveKeyOf } from './backups.ts'
import { serverNameOf } from './resources.ts'

/** Whether a database has a server. It then keeps its slot, even when the quota is lowered. */
export const hasServer = ({ status }: DedicatedDatabase): boolean => status?.serverRef !== undefined

/** Whether the status of a database says that the quota is exceeded. */
export const isOver = isOverQuota(DatabaseReason.QuotaExceeded)

/** Indexes of the cache of DedicatedDatabases. */
export const databaseIndexes = {
  ...quotaIndexes({ hasBegun: hasServer, reason: DatabaseReason.QuotaExceeded }),
  /** Name of the DatabaseServer of a database that is not being deleted. */
  server: ({ metadata }: DedicatedDatabase): readonly string[] =>
    metadata.deletionTimestamp === undefined ? [serverNameOf(metadata.uid)] : [],
  /** Name of the DatabaseServer of any database. */
  everyServer: ({ metadata }: DedicatedDatabase): readonly string[] => [serverNameOf(metadata.uid)],
  /** Names of the DatabaseArchives that a database has, or is being restored from. */
  archive: ({ metadata, spec, status }: DedicatedDatabase): readonly string[] => {
    const own = archiveKeyOf(metadata.uid).name
    const from = status?.name === undefined ? spec.restoreFrom?.databaseId.toLowerCase() : undefined
    return from === undefined ? [own] : [own, archiveKeyOf(from).name]
  },
  /** Hostname of its SSH tunnel. */
  hostname: ({ status }: DedicatedDatabase): readonly string[] => (status?.sshTunnel ? [status.sshTunnel.hostname] : []),
  /** Name of the TunnelEndpoint of its SSH tunnel. */
  endpoint: ({ status }: DedicatedDatabase): readonly string[] => (status?.sshTunnel ? [status.sshTunnel.endpointRef.name] : []),
  /** Last ten characters of its database's name. */
  suffix: ({ metadata }: DedicatedDatabase): readonly string[] => [tenantSuffix(metadata.uid)],
}
