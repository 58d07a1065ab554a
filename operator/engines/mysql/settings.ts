import { createHash } from 'node:crypto'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { MooringError } from '../../../shared/errors.ts'
import { EngineCode } from '../engine.ts'
import { clamp, connectionsOf, type EngineSize } from '../size.ts'
import type { MysqlFamily } from './catalog.ts'
import type { Session } from './connection.ts'

/** Addresses, files and capacity of a server. Paths are as the engine's own process sees them. */
interface MysqlServer {
  readonly family: MysqlFamily
  readonly listen: string
  readonly port: number
  /**
   * Port for the administrator alone, and for MySQL the one IP address that it is served on; absent: the command line has the address. MariaDB
   * serves it on `listen`. Absent: there is none, as in MySQL before 8.0.14.
   */
  readonly own?: { readonly address?: string; readonly port: number } | undefined
  /** Data directory. */
  readonly data: string
  /**
   * Files for TLS, which the server requires off loopback. `caFile`: CA of the administrator's client certificate. Absent: the server has no
   * certificate of ours, and accepts clients without TLS.
   */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly caFile?: string } | undefined
  /** File with the statements of {@link adminSql}, which the server runs before it accepts connections. */
  readonly initFile: string
  /** File of the engine's log. Absent: the log goes to stderr. */
  readonly logFile?: string | undefined
  /** Maximum number of tenants, 50 by default; determines the number of connections. */
  readonly tenants?: number
  /** Maximum connections of each tenant, 12 by default. */
  readonly connectionsPerTenant?: number
  /** Whether access.ts restricts the sources of tenants' sessions. */
  readonly isRestricted?: boolean | undefined
  /** Size of a dedicated server, from which memory and connections follow. Absent: a shared server. */
  readonly size?: EngineSize | undefined
}

/**
 * Statement that the server runs at the start of each session. When it fails, as it does until access.ts has created the procedure, the
 * server ends the session. The privilege SUPER exempts the administrator. The statement is ASCII, which is the same in every character set
 * that a client may use.
 */
export const INIT_CONNECT = 'CALL mooring_access.verify()'

export type Settings = Readonly<Record<string, string>>

/** Maximum connections at the administrator's own port of MariaDB: those of two operators, of which one takes over. MySQL has no limit there. */
const ADMIN_CONNECTIONS = 64

/** Connections kept free for clients that have not logged in yet, and for an administrator without a port of its own. */
const RESERVED_CONNECTIONS = 54

/** Name of the file with the server's pid, in the data directory. */
export const PID_FILE = 'mysqld.pid'
/** Name of the socket in the data directory, which other users cannot access. The server cannot run without a socket. */
export const SOCKET = 'mysqld.sock'

/**
 * Returns the settings of a server by name. Each serves isolation (docs/isolation.md), durability, or a small idle server. All other
 * settings keep the engine's default. A version that does not know a setting with the prefix `loose-` ignores it.
 */
export function mysqlSettings(server: MysqlServer): Settings {
  const { size, tenants = 50, connectionsPerTenant = 12 } = server
  const connections = size ? connectionsOf(size) : tenants * connectionsPerTenant
  return {
    ...network(server),
    ...ownPort(server),
    ...ISOLATION,
    ...RESOURCES,
    ...(size && sized(size)),
    ...CEILINGS,
    ...(server.family === 'mariadb' ? MARIADB : MYSQL),
    ...(server.isRestricted && { init_connect: INIT_CONNECT }),
    max_connections: `${connections + RESERVED_CONNECTIONS}`,
  }
}

function network({ family, listen, port, data, tls, initFile, logFile }: MysqlServer): Settings {
  return {
    port: `${port}`,
    bind_address: listen,
    datadir: data,
    // Temporary files count with the data: the system's directory may be small, shared or hidden from the server.
    tmpdir: data,
    socket: `${data}/${SOCKET}`,
    pid_file: `${data}/${PID_FILE}`,
    init_file: initFile,
    ...(logFile !== undefined && { log_error: logFile }),
    ...(tls && !isLoopback(listen) && { require_secure_transport: 'ON' }),
    // On loopback, where clients verify nothing, MySQL uses an RSA key that it generates.
    ...(tls && (family === 'mariadb' || !isLoopback(listen)) && filesOf(tls)),
    // Bounds how long a connection that does not log in holds a slot, in seconds: enough of them would shut out everybody.
    connect_timeout: '2',
  }
}

function ownPort({ family, own }: MysqlServer): Settings {
  if (!own) return {}
  if (family === 'mariadb') return { extra_port: `${own.port}`, extra_max_connections: `${ADMIN_CONNECTIONS}` }
  // No listener of its own (`create_admin_listener_thread`): it accepts logins before the server can check them, and 8.0.15 crashes.
  return {
    ...(own.address !== undefined && { 'loose-admin_address': own.address }),
    'loose-admin_port': `${own.port}`,
  }
}

const filesOf = ({ certFile, keyFile, caFile }: NonNullable<MysqlServer['tls']>): Settings => ({
  ssl_cert: certFile,
  ssl_key: keyFile,
  ...(caFile !== undefined && { ssl_ca: caFile }),
})

const ISOLATION: Settings = {
  local_infile: 'OFF',
  // Otherwise the clause DATA DIRECTORY could place the file of a table anywhere.
  'symbolic-links': '0',
  // Accounts are bound to addresses, so no DNS lookup is needed. Without a host cache, failed logins block no client address.
  skip_name_resolve: 'ON',
  host_cache_size: '0',
  max_connect_errors: '4294967295',
  // The number is that of the server: a tenant could leave none to others. Each session may hold as many as fit into memory.
  max_prepared_stmt_count: '1048576',
  // Statements contain tenants' data, and passwords that tenants set.
  general_log: 'OFF',
  slow_query_log: 'OFF',
  log_output: 'NONE',
  // Tenants could read the names of all databases from its tables, and it takes tens of megabytes.
  performance_schema: 'OFF',
  // Bounds the temporary tables of all tenants together.
  innodb_temp_data_file_path: 'ibtmp1:12M:autoextend:max:2G',
}

/**
 * SQL modes of new sessions: the engine's own, so that an application finds what it expects, and written out, so that no image or version
 * changes them. NO_AUTO_CREATE_USER of 5.7, which 8.0 does not have, concerns GRANT alone.
 */
const SQL_MODE: Readonly<Record<MysqlFamily, string>> = {
  mysql: 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
  mariadb: 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION',
}

const RESOURCES: Settings = {
  character_set_server: 'utf8mb4',
  default_time_zone: '+00:00',
  innodb_buffer_pool_size: '64M',
  innodb_buffer_pool_load_at_startup: 'OFF',
  innodb_buffer_pool_dump_at_shutdown: 'OFF',
}

/** Settings of a server with one database (docs/dedicated.md, "Sizes"). */
const sized = ({ memoryMiB, storageGiB }: EngineSize): Settings => ({
  innodb_buffer_pool_size: `${clamp(memoryMiB / 2, 64, 2_097_152)}M`,
  // Temporary tables must not fill the volume: the data need space, too.
  innodb_temp_data_file_path: `ibtmp1:12M:autoextend:max:${clamp(storageGiB / 4, 1, 1_024)}G`,
})

/**
 * Maximum values to which a session can set its own buffers (MySQL manual, "Program Option Modifiers"); larger ones are truncated with a
 * warning. A statement may have several of each.
 */
const CEILINGS: Settings = {
  'maximum-sort_buffer_size': '16M',
  'maximum-join_buffer_size': '16M',
  'maximum-bulk_insert_buffer_size': '16M',
  'maximum-read_buffer_size': '16M',
  'maximum-read_rnd_buffer_size': '16M',
  'maximum-preload_buffer_size': '1M',
  'maximum-max_heap_table_size': '64M',
  'maximum-tmp_table_size': '64M',
  'maximum-group_concat_max_len': '16M',
  'maximum-query_alloc_block_size': '64K',
  'maximum-query_prealloc_size': '64K',
  'maximum-range_alloc_block_size': '64K',
  'maximum-transaction_alloc_block_size': '64K',
  'maximum-transaction_prealloc_size': '64K',
}

/**
 * Tenants may keep events, which dumps contain, but none runs: it would run without a session that the watchdog could end. MySQL that starts with
 * `DISABLED` rejects every other value until its next start. MariaDB would reject events as a whole, and SHOW EVENTS, by which a dump begins;
 * there only the administrator could switch them on.
 */
const EVENT_SCHEDULER: Readonly<Record<MysqlFamily, string>> = { mysql: 'DISABLED', mariadb: 'OFF' }

const MYSQL: Settings = {
  event_scheduler: EVENT_SCHEDULER.mysql,
  // A snapshot that a tenant keeps makes the undo records of all tenants grow; their files shrink again once it is gone (bootstrap.ts).
  innodb_undo_log_truncate: 'ON',
  innodb_max_undo_log_size: '64M',
  // By default a server with little to do would not truncate them for minutes.
  innodb_purge_rseg_truncate_frequency: '16',
  sql_mode: SQL_MODE.mysql,
  // What the server names first in a handshake: old clients give up on a name that they do not know, whatever the account has.
  default_authentication_plugin: 'mysql_native_password',
  secure_file_priv: 'NULL',
  tls_version: 'TLSv1.2',
  log_error_verbosity: '2',
  // Without a binary log, tenants may create triggers and functions, and a commit writes to one file less.
  disable_log_bin: '1',
  'loose-mysqlx': '0',
}

const MARIADB: Settings = {
  event_scheduler: EVENT_SCHEDULER.mariadb,
  sql_mode: SQL_MODE.mariadb,
  tls_version: 'TLSv1.2,TLSv1.3',
  log_warnings: '1',
  skip_log_bin: '1',
  feedback: 'OFF',
  // Duration in seconds from which the server counts a statement as slow (measure.ts).
  long_query_time: '1',
  'maximum-join_buffer_space_limit': '16M',
  'maximum-mrr_buffer_size': '16M',
}

/** Whether a server of this version can have a port for the administrator alone: MariaDB, and MySQL from 8.0.14 on. */
export function hasAdminPort(family: MysqlFamily, version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  return family === 'mariadb' || major > 8 || (major === 8 && (minor > 0 || patch >= 14))
}

/** Returns the text of the server's option file. */
export function optionFile(settings: Settings): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  return `[mysqld]\n${lines.join('')}`
}

interface Admin {
  readonly family: MysqlFamily
  readonly user: string
  /** Form in which the server stores the password ({@link nativeHash}). */
  readonly hash: string
  /** Address from which the administrator logs in. */
  readonly host: string
  /** Whether the server requires a client certificate for the administrator's name besides the password. */
  readonly certified?: boolean
}

/**
 * Returns the statements that a server runs at each start: they create the administrator's account, or give it this password, and drop the
 * account of the installation.
 */
export function adminSql({ family, user, hash, host, certified = false }: Admin): string {
  const admin = `'${user}'@'${host}'`
  const proof = family === 'mariadb' ? `VIA mysql_native_password USING '${hash}'` : `WITH mysql_native_password AS '${hash}'`
  return [
    `CREATE USER IF NOT EXISTS ${admin} IDENTIFIED ${proof}`,
    `ALTER USER ${admin} IDENTIFIED ${proof} REQUIRE ${certified ? `SUBJECT '/CN=${user}'` : 'NONE'}`,
    `GRANT ALL PRIVILEGES ON *.* TO ${admin} WITH GRANT OPTION`,
    `DROP USER IF EXISTS 'root'@'localhost'`,
  ]
    .map((statement) => `${statement};\n`)
    .join('')
}

/** Returns the form in which `mysql_native_password` stores a password (MySQL manual, "Native Pluggable Authentication"). */
export function nativeHash(password: string): string {
  const sha1 = (data: Buffer | string): Buffer => createHash('sha1').update(data).digest()
  return `*${sha1(sha1(password)).toString('hex').toUpperCase()}`
}

/** Variables on which the isolation of tenants depends (docs/isolation.md), each with its safe values. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  local_infile: ['OFF'],
  event_scheduler: ['OFF', 'DISABLED'],
  general_log: ['OFF'],
  slow_query_log: ['OFF'],
  skip_name_resolve: ['ON'],
}

/** Query for the anonymous accounts and the remote accounts of root that an installation may have. */
const OPEN_ACCOUNTS = `SELECT User AS user, Host AS host FROM mysql.user WHERE User = '' OR (User = 'root' AND Host <> 'localhost')`

/**
 * Removes what an installation may leave open to every client: anonymous accounts, remote accounts of root, the database `test`.
 * @throws MooringError `server_unsafe` when a setting that isolation depends on has another value
 */
export async function harden(session: Session): Promise<void> {
  const names = Object.keys(REQUIRED)
  const rows = await session.query<{ Variable_name: string; Value: string }>('SHOW GLOBAL VARIABLES WHERE Variable_name IN (?)', [
    names,
  ])
  const unsafe = rows.filter(({ Variable_name: name, Value: value }) => !REQUIRED[name]?.includes(value))
  if (unsafe.length > 0) {
    const found = unsafe.map(({ Variable_name: name, Value: value }) => `${name}=${value}`).join(', ')
    throw new MooringError(EngineCode.unsafe, `the server runs with unsafe settings: ${found}`)
  }
  for (const { user, host } of await session.query<{ user: string; host: string }>(OPEN_ACCOUNTS)) {
    await session.query('DROP USER IF EXISTS ?@?', [user, host])
  }
  await session.query('DROP DATABASE IF EXISTS test')
}
