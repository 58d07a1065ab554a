import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, type FileHandle, lchown, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import pg from 'pg'
import { codeOf, MooringError } from '../../shared/errors.ts'
import { pause } from '../../shared/timers.ts'
import type { BackupClock } from '../clock.ts'
import { descriptorPath, openDirectory } from './data-files.ts'
import type { PostgresqlFiles } from './server.ts'

export const SCRATCH_FAILED = 'scratch_server_failed'

/** Directories of one scratch server. */
export interface ScratchPaths {
  readonly root: string
  readonly data: string
  readonly config: string
  readonly log: string
  readonly view: string
  /** Name of the login that reads the data. The name of the root is part of it, so no role of a tenant has it. */
  readonly reader: string
}

/** @param root path whose last part has at most 40 characters and cannot be guessed */
export function scratchPaths(root: string): ScratchPaths {
  const below = (name: string): string => join(root, name)
  const reader = `mooring_reader_${basename(root)}`
  return { root, data: below('data'), config: below('config'), log: below('log'), view: below('view'), reader }
}

export interface ScratchDeps {
  readonly server: Pick<PostgresqlFiles, 'administrator' | 'program'>
  readonly paths: ScratchPaths
  readonly clock: BackupClock
  readonly signal: AbortSignal
}

/** Server on restored files, which a drill reads. */
export interface ScratchServer extends AsyncDisposable {
  /** Id of the next transaction at the end of recovery. */
  readonly nextTransaction: bigint
  /**
   * Opens a connection of a login that reads everything and may do nothing else. The planner calls functions of tenants, such as those in
   * predicates of indexes: as a superuser they could run programs. The caller ends the connection.
   */
  connect(database: string): Promise<pg.Client>
}

/** Paths as the server sees them: descriptors that it inherits, since it may not be permitted to traverse the paths of the directories. */
const DATA = '/proc/self/fd/3'
const CONFIG = '/proc/self/fd/4'
const HBA = 'pg_hba.conf'

/**
 * Settings on the command line, which override all others: the server listens on a socket in its data directory alone, runs no background jobs,
 * archives nothing and connects to nothing.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  config_file: `${CONFIG}/postgresql.conf`,
  hba_file: `${CONFIG}/${HBA}`,
  listen_addresses: '',
  port: '5432',
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  ssl: 'off',
  archive_mode: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_replication_slots: '0',
  max_logical_replication_workers: '0',
  max_parallel_workers: '0',
  autovacuum: 'off',
  shared_preload_libraries: '',
  session_preload_libraries: '',
  local_preload_libraries: '',
  jit: 'off',
  logging_collector: 'off',
  log_min_error_statement: 'panic',
  log_statement: 'none',
  // A crash loses nothing that is needed.
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '20',
  max_prepared_transactions: '100',
  max_locks_per_transaction: '256',
  shared_buffers: '64MB',
  dynamic_shared_memory_type: 'mmap',
  lc_messages: 'C',
}

/**
 * Shell program that replaces itself by the server. A second process, which is not a child of the server, kills the server at the end of
 * standard input: the agent has exited, or has closed it.
 */
const UNTIL_INPUT_ENDS =
  'exec 9<&0; ( ( while read -r line <&9; do :; done; kill -QUIT $$ ) 9<&9 & ); exec 9<&-; exec "$@" </dev/null'

/** Creates the directories of a scratch server, without its data. */
export async function makeScratch({ paths, server }: Pick<ScratchDeps, 'paths' | 'server'>): Promise<void> {
  const { data, config, log, view } = paths
  for (const directory of [data, config, log, view]) await mkdir(directory, { recursive: true, mode: 0o700 })
  await chmod(paths.config, 0o755)
  await chmod(paths.view, 0o755)
  await writeFile(join(paths.config, 'postgresql.conf'), '')
  const [administrator, reader] = [server.administrator, paths.reader].map((name) => `"${name.replaceAll('"', '""')}"`)
  await writeFile(join(paths.config, HBA), `local postgres ${administrator} trust\nlocal all ${reader} trust\n`)
  const { user } = server.program
  if (user) await chown(paths.log, user.uid, user.gid)
}

/** Starts a server on the data of a scratch directory, and waits until it has recovered. @throws MooringError `scratch_server_failed` */
export async function startScratch(deps: ScratchDeps): Promise<ScratchServer> {
  const { paths, server, signal } = deps
  const { user } = server.program
  if (user) await giveTo(paths.data, user)
  const data = await openDirectory(paths.data)
  const child = await launch(deps, data)
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  const connectAs = async (user: string, database: string, isReadOnly: 'on' | 'off'): Promise<pg.Client> => {
    const client = new pg.Client({
      host: descriptorPath(data),
      port: 5432,
      user,
      database,
      // Settings and schemas of the tenant must not affect the statements.
      options: `-c search_path=pg_catalog -c statement_timeout=0 -c default_transaction_read_only=${isReadOnly} -c row_security=off`,
    })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const connect = (database: string): Promise<pg.Client> => connectAs(paths.reader, database, 'on')
  const endInput = (): void => void child.stdin?.destroy()
  signal.addEventListener('abort', endInput, { once: true })
  const stop = async (): Promise<void> => {
    signal.removeEventListener('abort', endInput)
    endInput()
    if (!hasEnded()) await exited
    await data.close()
  }
  try {
    const administrator = await whenRecovered(deps, {
      connect: () => connectAs(server.administrator, 'postgres', 'off'),
      hasEnded,
    })
    let nextTransaction: bigint
    try {
      nextTransaction = await nextTransactionOf(administrator)
      await createReader(administrator, paths.reader)
    } finally {
      await administrator.end()
    }
    return { nextTransaction, connect, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function launch({ server: { program }, paths }: ScratchDeps, data: FileHandle): Promise<ChildProcess> {
  await using config = await openDirectory(paths.config)
  await using log = await openDirectory(paths.log)
  await using output = await open(join(paths.log, 'server.log'), 'w', 0o600)
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const environment = Object.entries(program.env).map(([name, value]) => `${name}=${value}`)
  // The environment names libraries, which must affect neither the shell nor the launcher.
  const serve = ['/usr/bin/env', '-i', ...environment, program.postgres, '-D', DATA, ...settings]
  const command = ['/bin/sh', '-c', UNTIL_INPUT_ENDS, 'sh', ...serve]
  const launcher = program.launcher?.(paths.view)
  const [file = '', ...args] = launcher ? [launcher.file, ...launcher.args, ...command] : command
  const child = spawn(file, args, {
    ...program.user,
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', ...launcher?.env },
    detached: true,
    stdio: ['pipe', output.fd, output.fd, data.fd, config.fd, log.fd],
  })
  child.on('error', () => undefined)
  child.stdin?.on('error', () => undefined)
  await once(child, 'spawn')
  return child
}

async function nextTransactionOf(client: pg.Client): Promise<bigint> {
  const { rows } = await client.query<{ next: string }>('SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next')
  return BigInt(rows[0]?.next ?? 0)
}

/** Creates the login that reads the data. It owns no database, so it needs the right to connect, and a database without a connection limit. */
async function createReader(client: pg.Client, reader: string): Promise<void> {
  const role = pg.escapeIdentifier(reader)
  await client.query(`CREATE ROLE ${role} LOGIN BYPASSRLS IN ROLE pg_read_all_data`)
  const { rows } = await client.query<{ name: string }>('SELECT datname AS name FROM pg_database WHERE datallowconn')
  for (const { name } of rows) {
    const database = pg.escapeIdentifier(name)
    await client.query(`GRANT CONNECT ON DATABASE ${database} TO ${role}`)
    await client.query(`ALTER DATABASE ${database} CONNECTION LIMIT -1`)
  }
}

const POLL_MS = 50
/** SQLSTATE cannot_connect_now: the server is in recovery. */
const RECOVERING = '57P03'
const NOT_LISTENING = new Set(['ENOENT', 'ECONNREFUSED', RECOVERING])

/** Returns the first connection that the server accepts. */
async function whenRecovered(
  { clock, signal, paths }: ScratchDeps,
  { connect, hasEnded }: { readonly connect: () => Promise<pg.Client>; readonly hasEnded: () => boolean },
): Promise<pg.Client> {
  for (;;) {
    signal.throwIfAborted()
    if (hasEnded()) throw new MooringError(SCRATCH_FAILED, `the restored server ended: ${await lastErrors(paths)}`)
    try {
      return await connect()
    } catch (error) {
      if (!NOT_LISTENING.has(codeOf(error) ?? '')) throw error
    }
    await pause(clock, POLL_MS, signal)
  }
}

const LOG_BYTES = 4_096

/** Returns the last errors in the log of a scratch server. They contain no data. */
async function lastErrors({ log }: ScratchPaths): Promise<string> {
  const text = await readFile(join(log, 'server.log'), 'utf8').catch(() => '')
  const lines = text.slice(-LOG_BYTES).split('\n')
  return (
    lines.filter((line) => /\b(?:FATAL|PANIC|HINT): |^(?:postgres|unshare|sh|env|confine): /.test(line)).join('; ') ||
    'without a message'
  )
}

/** Makes the server's user the owner of a directory, which only this process can reach. */
async function giveTo(directory: string, { uid, gid }: { readonly uid: number; readonly gid: number }): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  for (const entry of entries) await lchown(join(entry.parentPath, entry.name), uid, gid)
  await chown(directory, uid, gid)
}

/** Removes a scratch directory. Retries, as the server of an agent that was killed may still write while it ends. */
export async function removeScratch(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}
