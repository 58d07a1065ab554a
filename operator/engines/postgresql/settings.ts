import { includes, rangesOf, textOf } from '../../../crds/formats/address-range.ts'
import type { Admitted } from '../access.ts'
import { EXPORTER_SOURCE, EXPORTER_USER } from '../exporter.ts'
import { clamp, connectionsOf, type EngineSize } from '../size.ts'

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
  /** Size of a dedicated server, from which memory and connections follow. Absent: a shared server. */
  readonly size?: EngineSize | undefined
  /** Settings of continuous archiving, which replace those of a server without it. Absent: no archiving. */
  readonly archive?: Settings | undefined
}

export type Settings = Readonly<Record<string, string>>

/** Connection slots reserved for the administrator. */
const RESERVED_CONNECTIONS = 24

/**
 * Returns the settings of a PostgreSQL server by name, the same for 14 and 15. Each setting serves isolation (docs/isolation.md),
 * durability, or a small idle server near 0 % of a core. All other settings keep the engine's default.
 */
export function postgresqlSettings(server: PostgresqlServer): Settings {
  const { size, tenants = 50, connectionsPerTenant = 12 } = server
  const connections = size ? connectionsOf(size) : tenants * connectionsPerTenant
  return {
    ...network(server),
    ...ISOLATION,
    ...DURABILITY,
    ...RESOURCES,
    ...(size && sized(size)),
    ...server.archive,
    dynamic_shared_memory_type: server.sharedMemory === false ? 'mmap' : 'posix',
    max_connections: `${connections + 30 + RESERVED_CONNECTIONS}`,
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

const MIB_PER_GIB = 1024
const KIB_PER_MIB = 1024

/** Settings of a server with one database (docs/dedicated.md, "Sizes"). */
function sized(size: EngineSize): Settings {
  const { cpu, memoryMiB, storageGiB } = size
  const workers = Math.ceil(cpu)
  const storageMiB = storageGiB * MIB_PER_GIB
  return {
    shared_buffers: `${clamp(memoryMiB / 4, 16, 65_536)}MB`,
    effective_cache_size: `${clamp((memoryMiB * 3) / 4, 64, 4_194_304)}MB`,
    maintenance_work_mem: `${clamp(memoryMiB / 16, 16, 2_048)}MB`,
    // A quarter of the memory, if each connection sorts once.
    work_mem: `${clamp((memoryMiB * KIB_PER_MIB) / 4 / connectionsOf(size), 1_024, 1_048_576)}kB`,
    max_wal_size: `${clamp(storageMiB / 10, 128, 16_384)}MB`,
    // Leaves space for the data themselves.
    temp_file_limit: `${clamp(storageMiB / 4, 256, 1_048_576)}MB`,
    max_worker_processes: `${Math.max(4, 2 * workers)}`,
    max_parallel_workers: `${Math.max(2, workers)}`,
    max_parallel_workers_per_gather: `${Math.max(1, Math.floor(workers / 2))}`,
    autovacuum_naptime: '1min',
  }
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
   * loopback; `published`: this machine, by a port that a container publishes on loopback, so that the server sees another address.
   */
  readonly reach: 'loopback' | 'network' | 'tls' | 'published'
  /** Mooring's own databases, open to every role with the privilege CONNECT. */
  readonly own?: readonly string[] | undefined
  /** Ranges from which tenants may log in, within `reach` ({@link engineSources}). Absent: the server is not restricted. */
  readonly access?: { readonly sources: Admitted['engine'] } | undefined
  /** Whether the exporter beside the server may log in: from the pod, without TLS, to the maintenance database. */
  readonly hasExporter?: boolean | undefined
}

const LOOPBACK = ['127.0.0.0/8', '::1/128']

/** Returns the line of `pg_hba.conf` by which {@link admittedIn} finds out which sources the rules in it admit. */
export const admittedLine = (sources: Admitted['engine']): string =>
  `# admitted: ${sources === undefined ? 'all' : sources.length === 0 ? 'none' : sources.join(' ')}`

/** Returns the {@link admittedLine} of a file. A file without one admits every source. */
export const admittedIn = (text: string): string => /^# admitted: .*$/m.exec(text)?.[0] ?? admittedLine(undefined)

/** Returns the records' type and address for tenants from these sources. */
function tenantsFrom(sources: readonly string[], reach: HbaOptions['reach']): readonly (readonly ['host' | 'hostssl', string])[] {
  const local = within(LOOPBACK, sources).map((address) => ['host', address] as const)
  const encrypted = sources.map((address) => ['hostssl', address] as const)
  const plain = sources.map((address) => ['host', address] as const)
  return { loopback: local, network: [...local, ...encrypted], tls: encrypted, published: plain }[reach]
}

/** Returns the ranges that are common to both lists: of two that overlap, one includes the other. */
function within(ranges: readonly string[], sources: readonly string[]): readonly string[] {
  const [outer, inner] = [rangesOf(ranges), rangesOf(sources)]
  return rangesOf([
    ...outer.filter((range) => inner.some((source) => includes(source, range))).map(textOf),
    ...inner.filter((source) => outer.some((range) => includes(range, source))).map(textOf),
  ]).map(textOf)
}

/**
 * Returns the text of `pg_hba.conf`. A tenant may connect only to the database of its own name (`sameuser`), whatever other roles grant
 * it: in 14 a role can make another role its member, and so pass on its privilege CONNECT. No record admits replication. The
 * administrator logs in from the server's machine, or, when the operator runs elsewhere (`tls`), with the operator's client certificate in
 * addition to the password.
 */
export function postgresqlHba({ admin, reach, own = [], access, hasExporter = false }: HbaOptions): string {
  const role = `"${admin.replaceAll('"', '""')}"`
  const local = LOOPBACK.map((address) => ['host', address] as const)
  const here = [...local, ['hostssl', 'samehost'] as const]
  const all = ['hostssl', 'all'] as const
  const published = ['host', 'all'] as const
  const forAdmin = { loopback: local, network: here, tls: [all], published: [published] }[reach]
  const everywhere = { loopback: local, network: [...local, all], tls: [all], published: [published] }[reach]
  const forTenants = access?.sources ? tenantsFrom(access.sources, reach) : everywhere
  const proof = reach === 'tls' ? 'scram-sha-256 clientcert=verify-full' : 'scram-sha-256'
  const tenants = ['sameuser all', ...own.map((name) => `"${name}" all`)]
  return [
    ...(access ? [admittedLine(access.sources)] : []),
    ...forAdmin.map(([type, address]) => `${type} all ${role} ${address} ${proof}`),
    `host all ${role} all reject`,
    ...(hasExporter ? [`host postgres ${EXPORTER_USER} ${EXPORTER_SOURCE}/32 scram-sha-256`] : []),
    ...forTenants.flatMap(([type, address]) => tenants.map((pair) => `${type} ${pair} ${address} scram-sha-256`)),
  ]
    .map((record) => `${record}\n`)
    .join('')
}
