/** Where a server listens and what it is made for. Paths are as the engine's own process sees them. */
export interface PostgresqlServer {
  readonly listen: string
  readonly port: number
  readonly hbaFile: string
  /** Offered on every address, required off loopback (see {@link postgresqlHba}). Absent only where nothing but loopback is listened on. */
  readonly tls?:
    | {
        readonly certFile: string
        readonly keyFile: string
        /** CA of the certificate by which the administrator is known ({@link postgresqlHba}). */
        readonly caFile?: string
      }
    | undefined
  /** Directory of the engine's own rotated log; absent: stderr. */
  readonly logDirectory?: string | undefined
  /** Tenants that the server may hold; sizes its connection slots. */
  readonly tenants?: number
  /** Whether it may make shared memory by name; true unless given. Else parallel queries share files in the data directory. */
  readonly sharedMemory?: boolean
  /** Connections that each of them may open. */
  readonly connectionsPerTenant?: number
}

export type Settings = Readonly<Record<string, string>>

/** Kept free for the admin, whatever tenants do. */
const RESERVED_CONNECTIONS = 24

/**
 * Settings of a shared PostgreSQL server, 14 or 15 alike, by name. Every one is there for isolation (docs/isolation.md), for
 * safety after a crash, or to keep an idle server near 0 % of a core and small; everything else is the engine's default.
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
    // Local processes of any uid could reach a socket.
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
    // A connection that does not log in holds a slot for no longer than this.
    authentication_timeout: '10s',
    tcp_keepalives_idle: '60s',
    tcp_keepalives_interval: '15s',
    tcp_keepalives_count: '4',
    // A statement whose client is gone ends, instead of running on for nobody.
    client_connection_check_interval: '15s',
  }
}

const ISOLATION: Settings = {
  password_encryption: 'scram-sha-256',
  superuser_reserved_connections: `${RESERVED_CONNECTIONS}`,
  // A session's sorts and hashes on disk. Tenants may not change it.
  temp_file_limit: '512MB',
  // Parallel workers come out of one budget for the server; tenants may ask for more, but do not get it.
  max_worker_processes: '4',
  max_parallel_workers: '2',
  max_parallel_workers_per_gather: '1',
  // Nobody replicates from a shared server: no walsender, no slot that would pin WAL, no logical decoding.
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_replication_slots: '0',
  max_logical_replication_workers: '0',
  // A prepared transaction would outlive its session and block the drop of its database.
  max_prepared_transactions: '0',
  dynamic_library_path: '$libdir',
  // A tenant's text never reaches the log: neither its statements (a password may be in one) nor its errors.
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
  // A restart finds no half of the server still running on its data.
  restart_after_crash: 'on',
}

const RESOURCES: Settings = {
  shared_buffers: '64MB',
  maintenance_work_mem: '32MB',
  max_locks_per_transaction: '128',
  // Without LLVM on most machines, and tens of megabytes a session where it is there.
  jit: 'off',
  min_wal_size: '64MB',
  max_wal_size: '512MB',
  checkpoint_timeout: '15min',
  // Each database is visited once in this time, at some milliseconds of work: 60 of them are 0.2 a second.
  autovacuum_naptime: '5min',
  autovacuum_max_workers: '2',
  // Sets of tenants that lock one row (multixacts) are kept in files that belong to no database: some 60 bytes for each, 1.2 GB in all.
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

/** `postgresql.conf`: a line a setting. */
export function postgresqlConf(settings: Settings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join('')
}

/**
 * From where logins are accepted. `loopback`: from this machine; `network`: also from elsewhere, with TLS; `tls`: from anywhere, with TLS
 * even on loopback.
 */
export interface HbaOptions {
  /** Name of the server's admin role, the only one that may use any database. */
  readonly admin: string
  readonly reach: 'loopback' | 'network' | 'tls'
  /** Databases of Mooring's own, for whichever role has the right to connect. */
  readonly own?: readonly string[] | undefined
}

const LOOPBACK = ['127.0.0.0/8', '::1/128']

/**
 * `pg_hba.conf`. A tenant reaches the database of its own name and no other (`sameuser`), whatever else was granted to it: in 14
 * a role may make another a member of itself, and so pass on its right to connect. No record admits replication. The administrator logs in
 * from the machine itself, or, where the operator is elsewhere (`tls`), with the operator's certificate: its password alone is not enough.
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
