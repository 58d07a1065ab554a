/** Addresses, files and capacity of a server. Paths are as the engine's own process sees them. */
export interface PostgresqlServer {
  readonly listen: string
  readonly port: number
  readonly hbaFile: string
  /** Files for TLS, which is required off loopback ({@link postgresqlHba}). Absent when the server listens on loopback only. */
  readonly tls?:
    | {
        readonly certFile: string
        readonly keyFile: string
        /** CA that signs the administrator's client certificate ({@link postgresqlHba}). */
        readonly caFile?: string
      }
    | undefined
  /** Directory of the engine's own rotated log. Absent: the log goes to stderr. */
  readonly logDirectory?: string | undefined
  /** Maximum number of tenants, 50 by default; determines the number of connection slots. */
  readonly tenants?: number
  /** Whether the server may create named shared memory, true by default. When false, parallel queries share files in the data directory. */
  readonly sharedMemory?: boolean
  /** Maximum connections of each tenant, 12 by default. */
  readonly connectionsPerTenant?: number
}

export type Settings = Readonly<Record<string, string>>

/** Connection slots reserved for the administrator. */
const RESERVED_CONNECTIONS = 24

/**
 * Returns the settings of a shared PostgreSQL server by name, the same for 14 and 15. Each setting serves isolation (docs/isolation.md),
 * durability, or a small idle server near 0 % of a core. All other settings keep the engine's default.
 */
export function postgresqlSettings(server: PostgresqlServer): Settings {
  return {
    ...network(server),
    ...ISOLATION,
    ...DURABILITY,
    ...RESOURCES,
    dynamic_shared_memory_type: server.sharedMemory === false ? 'mmap' : 'posix',
    max_connections: `${(server.tenants ?? 50) * (server.connectionsPerTenant ?? 12) + 30 + RESERVED_CONNECTIONS}`,
    ...logTo(server.logDirectory),
  }
}

function network({ listen, port, hbaFile, tls }: PostgresqlServer): Settings {
  return {
    listen_addresses: listen,
    port: `${port}`,
    // A local process of any uid could connect to a Unix socket.
    unix_socket_directories: '',
    hba_file: hbaFile,
    ...(tls
      ? {
          ssl: 'on',
          ssl_cert_file: tls.certFile,
          ssl_key_file: tls.keyFile,
          ...(tls.caFile !== undefined && { ssl_ca_file: tls.caFile }),
          ssl_min_protocol_version: 'TLSv1.2',
        }
      : { ssl: 'off' }),
    // Bounds how long a connection that does not log in holds a slot.
    authentication_timeout: '10s',
    tcp_keepalives_idle: '60s',
    tcp_keepalives_interval: '15s',
    tcp_keepalives_count: '4',
    // Ends a statement whose client has disconnected.
    client_connection_check_interval: '15s',
  }
}

const ISOLATION: Settings = {
  password_encryption: 'scram-sha-256',
  superuser_reserved_connections: `${RESERVED_CONNECTIONS}`,
  // Bounds a session's sorts and hashes on disk. Tenants cannot change it.
  temp_file_limit: '512MB',
  // Bounds the parallel workers of the whole server, whatever tenants set for their sessions.
  max_worker_processes: '4',
  max_parallel_workers: '2',
  max_parallel_workers_per_gather: '1',
  // Disables replication: no walsender, no slot that would retain WAL, no logical decoding.
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_replication_slots: '0',
  max_logical_replication_workers: '0',
  // A prepared transaction would outlive its session and block the drop of its database.
  max_prepared_transactions: '0',
  dynamic_library_path: '$libdir',
  // Keeps tenants' text out of the log: a statement may contain a password, and an error may quote the statement.
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_min_error_statement: 'panic',
  log_min_messages: 'log',
  log_error_verbosity: 'terse',
  log_parameter_max_length_on_error: '0',
}

const DURABILITY: Settings = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // After a backend crash the server ends all processes and recovers, instead of stopping.
  restart_after_crash: 'on',
}

const RESOURCES: Settings = {
  shared_buffers: '64MB',
  maintenance_work_mem: '32MB',
  max_locks_per_transaction: '128',
  // LLVM is missing on most machines, and takes tens of megabytes per session where it is installed.
  jit: 'off',
  min_wal_size: '64MB',
  max_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // Autovacuum visits each database once per interval, for a few milliseconds: 60 databases make 0.2 visits per second.
  autovacuum_naptime: '5min',
  autovacuum_max_workers: '2',
  // Multixacts (sets of transactions that lock one row) take some 60 bytes each in files of no database: this bounds them at 1.2 GB.
  autovacuum_multixact_freeze_max_age: '20000000',
  wal_writer_delay: '1s',
  bgwriter_delay: '1s',
  timezone: 'UTC',
  lc_messages: 'C',
}

function logTo(directory: string | undefined): Settings {
  const lines: Settings = { log_timezone: 'UTC', log_checkpoints: 'off', log_line_prefix: '%m [%p] ' }
  if (directory === undefined) return { ...lines, logging_collector: 'off' }
  return {
    ...lines,
    logging_collector: 'on',
    log_directory: directory,
    log_filename: 'postgresql-%Y%m%dT%H%M%S.log',
    log_rotation_size: '10MB',
    log_rotation_age: '0',
  }
}

/** Returns the text of `postgresql.conf`, one setting per line. */
export function postgresqlConf(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join('')
}

/** Access rules of a server. */
export interface HbaOptions {
  /** Name of the administrator's role, the only one that may use any database. */
  readonly admin: string
  /**
   * Origin of accepted logins. `loopback`: this machine; `network`: also other machines, with TLS; `tls`: any machine, with TLS even on
   * loopback.
   */
  readonly reach: 'loopback' | 'network' | 'tls'
  /** Mooring's own databases, open to every role with the privilege CONNECT. */
  readonly own?: readonly string[] | undefined
}

const LOOPBACK = ['127.0.0.0/8', '::1/128']

/**
 * Returns the text of `pg_hba.conf`. A tenant may connect only to the database of its own name (`sameuser`), whatever other roles grant
 * it: in 14 a role can make another role its member, and so pass on its privilege CONNECT. No record admits replication. The
 * administrator logs in from the server's machine, or, when the operator runs elsewhere (`tls`), with the operator's client certificate in
 * addition to the password.
 */
export function postgresqlHba({ admin, reach, own = [] }: HbaOptions): string {
  const role = `"${admin.replaceAll('"', '""')}"`
  const local = LOOPBACK.map((address) => ['host', address] as const)
  const here = reach === 'network' ? [...local, ['hostssl', 'samehost'] as const] : local
  const all = ['hostssl', 'all'] as const
  const forAdmin = reach === 'tls' ? [all] : here
  const forTenants = { loopback: local, network: [...local, all], tls: [all] }[reach]
  const proof = reach === 'tls' ? 'scram-sha-256 clientcert=verify-full' : 'scram-sha-256'
  const tenants = ['sameuser all', ...own.map((name) => `"${name}" all`)]
  return [
    ...forAdmin.map(([type, address]) => `${type} all ${role} ${address} ${proof}`),
    `host all ${role} all reject`,
    ...forTenants.flatMap(([type, address]) => tenants.map((pair) => `${type} ${pair} ${address} scram-sha-256`)),
  ]
    .map((record) => `${record}\n`)
    .join('')
}
