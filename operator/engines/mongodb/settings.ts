import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Document } from 'mongodb'
import { stringify } from 'yaml'
import { connectionsOf, type EngineSize } from '../size.ts'
import type { Connection } from './connection.ts'
import { ServerCode, serverCodeOf } from './errors.ts'

/** Addresses, files and capacity of a server. Paths are as the engine's own process sees them. */
interface MongodbServer {
  readonly listen: string
  readonly port: number
  readonly dataDirectory: string
  /** File of {@link keyFileFor}, readable only by the engine's user. */
  readonly keyFile: string
  /** Files for TLS, which the server then requires. Absent when it listens on loopback only. */
  readonly tls?: { readonly certificateKeyFile: string; readonly caFile: string } | undefined
  /** Log file. Absent: the log goes to stdout. */
  readonly logFile?: string | undefined
  /** Maximum number of tenants, 50 by default; determines the number of connections. */
  readonly tenants?: number
  /** Size of a dedicated server, from which memory and connections follow. Absent: a shared server. */
  readonly size?: EngineSize | undefined
  /** Address whose connections the limit of connections does not count. Absent: it counts all. */
  readonly unlimited?: string | undefined
  /** Whether an exporter reads the diagnostic data of the server. */
  readonly hasExporter?: boolean | undefined
}

/** Name of the replica set, which has this server as its only member. */
export const REPLICA_SET = 'mooring'

/**
 * Iterations of SCRAM-SHA-256, the minimum of MongoDB. Passwords are 142 random bits, which tenants cannot replace, so more iterations
 * add no protection, and each login of a client costs one derivation.
 */
export const SCRAM_ITERATIONS = 5000

/**
 * Connections for each tenant. A driver's client has one or two connections for monitoring beside its pool. A connection takes some 130 KiB
 * (measured).
 */
const CONNECTIONS_PER_TENANT = 24
/** Connections for the administrator, whose own stay open. */
const RESERVED_CONNECTIONS = 60

/** Memory of one blocking stage of a query, in bytes; a stage that needs more uses the disk or fails. */
const STAGE_BYTES = 32 * 1_048_576

/** Parameters by which the server starts (MongoDB documentation, "MongoDB Server Parameters"). All exist in 5.0, 6.0 and 7.0. */
const PARAMETERS = {
  // Otherwise a local process could create the first administrator of a new server.
  enableLocalhostAuthBypass: false,
  authenticationMechanisms: 'SCRAM-SHA-256',
  scramSHA256IterationCount: SCRAM_ITERATIONS,
  diagnosticDataCollectionEnabled: false,
  // Drivers retry within this time. A session takes memory, and a document that counts towards no database.
  localLogicalSessionTimeoutMinutes: 5,
  // Empties the cache of sessions, which is one for all tenants: a full one rejects every new session. The default is five minutes.
  logicalSessionRefreshMillis: 10_000,
  transactionLifetimeLimitSeconds: 60,
  // A stop gives operations this long; the runtime kills the server after 4 s.
  shutdownTimeoutMillisForSignaledShutdown: 300,
  internalQueryMaxBlockingSortMemoryUsageBytes: STAGE_BYTES,
  internalDocumentSourceGroupMaxMemoryBytes: STAGE_BYTES,
}

/** Parameters of a server with an exporter: the server collects diagnostic data every 10 s, and keeps at most 10 MiB of it. */
const DIAGNOSTICS = {
  diagnosticDataCollectionEnabled: true,
  diagnosticDataCollectionPeriodMillis: 10_000,
  diagnosticDataCollectionDirectorySizeMB: 10,
}

/**
 * Returns the text of `mongod.conf`, the same for 5.0, 6.0 and 7.0. Each setting serves isolation (docs/isolation.md), durability, or a small
 * idle server. All other settings keep the engine's default.
 */
export function mongodConf(server: MongodbServer): string {
  return stringify({
    net: network(server),
    security: {
      authorization: 'enabled',
      keyFile: server.keyFile,
      // Disables JavaScript in queries and aggregations: $where, $function, $accumulator, mapReduce.
      javascriptEnabled: false,
    },
    replication: { replSetName: REPLICA_SET, oplogSizeMB: 256 },
    storage: {
      dbPath: server.dataDirectory,
      // A directory for each tenant, so that its files can be told apart.
      directoryPerDB: true,
      wiredTiger: { engineConfig: { cacheSizeGB: cacheSizeGB(server.size), configString: 'log=(file_max=16MB)' } },
    },
    // The slow query log would contain tenants' documents.
    operationProfiling: { mode: 'off', slowOpThresholdMs: 2_147_483_647, slowOpSampleRate: 0 },
    systemLog: {
      // One line for each connection would let clients fill the log.
      quiet: true,
      ...(server.logFile !== undefined && { destination: 'file', path: server.logFile, logAppend: true, logRotate: 'reopen' }),
    },
    setParameter: { ...PARAMETERS, ...(server.hasExporter && DIAGNOSTICS) },
  })
}

/** Smallest cache that the server accepts, in GiB. */
const CACHE_MIN = 0.25

/** Size of the cache in GiB: half of the memory above 1 GiB, in hundredths. */
const cacheSizeGB = (size: EngineSize | undefined): number =>
  size === undefined ? CACHE_MIN : Math.max(CACHE_MIN, Math.floor((size.memoryMiB - 1_024) / 20.48) / 100)

function network({ listen, port, tls, tenants = 50, size, unlimited }: MongodbServer) {
  const connections = size ? connectionsOf(size) : tenants * CONNECTIONS_PER_TENANT
  return {
    bindIp: listen,
    port,
    ipv6: isIPv6(listen),
    // Any local process could connect to a Unix socket.
    unixDomainSocket: { enabled: false },
    maxIncomingConnections: connections + RESERVED_CONNECTIONS,
    ...(unlimited !== undefined && { maxIncomingConnectionsOverride: [`${unlimited}/32`] }),
    // Versions before 5.0.32, 6.0.27 and 7.0.28 return memory of the server to a client without a login that sends a compressed message with
    // a wrong length (CVE-2025-14847). No client needs compression.
    compression: { compressors: 'disabled' },
    tls: tls
      ? {
          mode: 'requireTLS',
          certificateKeyFile: tls.certificateKeyFile,
          CAFile: tls.caFile,
          allowConnectionsWithoutCertificates: true,
          disabledProtocols: 'TLS1_0,TLS1_1',
        }
      : { mode: 'disabled' },
  }
}

/** Text before the password in the input of the hash. */
export const KEY_FILE_LABEL = 'mooring mongodb keyFile '

/**
 * Returns the content of the key file, which is the password of the server's internal user `__system` (MongoDB documentation, "Keyfiles").
 * The operator logs in as that user to create the administrator of a new server, so that the server never accepts a client without a
 * password. Derived from the administrator's password, which it does not reveal, in a way that a pod's script can repeat.
 */
export function keyFileFor(adminPassword: string): string {
  return createHash('sha512').update(`${KEY_FILE_LABEL}${adminPassword}`).digest('hex')
}

/** Time after which images of changed documents are removed, in seconds. Only a change stream that lags behind misses one. */
const IMAGE_SECONDS = 60

/**
 * Commands that bound what tenants write into collections of the server itself, which count towards no database (docs/isolation.md). A version
 * without such a collection rejects its command.
 */
const BOUNDS: readonly Document[] = [
  // The images go to the oplog instead, whose size is fixed. Otherwise there is one of up to 16 MiB for each session.
  { setParameter: 1, storeFindAndModifyImagesInSideCollection: false },
  // By default they stay as long as the oplog has the change, which may be much smaller than the document.
  { setClusterParameter: { changeStreamOptions: { preAndPostImages: { expireAfterSeconds: IMAGE_SECONDS } } } },
]

const UNKNOWN_COMMAND: readonly unknown[] = [ServerCode.commandNotFound, ServerCode.invalidOptions]

/**
 * Sets the bounds that the configuration file cannot, and opens the connections that stay open. A new server has no default privileges to
 * revoke: its configuration file and replica-set.ts close it.
 */
export async function harden(connection: Connection): Promise<void> {
  await Promise.all([connection, connection.watch].map((session) => session.command('admin', { ping: 1 })))
  for (const bound of BOUNDS) {
    try {
      await connection.command('admin', bound)
    } catch (error) {
      if (!UNKNOWN_COMMAND.includes(serverCodeOf(error))) throw error
    }
  }
}
