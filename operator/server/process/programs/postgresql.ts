import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { X509Certificate } from 'node:crypto'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { archiveSettings } from '../../../../backup/postgresql/settings.ts'
import { SPOOL, spoolLimits } from '../../archive.ts'
import { createScram } from '../../../engines/scram.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../../engines/postgresql/settings.ts'
import { isLoopback } from '../../../../crds/formats/address-list.ts'
import { readPid } from '../spawn/proc.ts'
import {
  type AccessConfig,
  type Cloneable,
  type ConfigFile,
  type EngineProgram,
  type DesiredConfig,
  at,
  type LoginAttempt,
} from './program.ts'
import { tlsTo } from '../../../engines/postgresql/connection.ts'
import type { AdminTarget } from '../../../engines/engine.ts'
import type { AdminCredentials } from '../../runtime.ts'
import { codeOf } from '../../../../shared/errors.ts'

const CONFIG = 'postgresql.conf'
const HBA = 'pg_hba.conf'

function accessFile({ listen, admin, access }: AccessConfig): ConfigFile {
  return { name: HBA, content: postgresqlHba({ admin, reach: isLoopback(listen) ? 'loopback' : 'network', access }) }
}

function configure(desired: DesiredConfig): readonly ConfigFile[] {
  const { listen, port, capacity, size, certificate, sharedMemory, archives } = desired
  const settings = postgresqlSettings({
    listen,
    port,
    hbaFile: `${at.config}/${HBA}`,
    tls: { certFile: `${at.config}/server.crt`, keyFile: `${at.config}/server.key` },
    logDirectory: at.log,
    tenants: capacity,
    size,
    sharedMemory,
    archive: archives ? archiveSettings(SPOOL, spoolLimits(size)) : undefined,
  })
  return [
    { name: CONFIG, content: postgresqlConf(settings) },
    accessFile(desired),
    { name: 'server.crt', content: certificate.certificate },
    { name: 'server.key', content: certificate.key, secret: true },
  ]
}

const initialise = (user: string, locale: string): readonly string[] => [
  ...['-D', at.data, '-U', user, '--auth=scram-sha-256', `--pwfile=${at.password}`],
  ...['-E', 'UTF8', `--locale=${locale}`, '--no-instructions', '--no-sync'],
]

/** Arguments of PostgreSQL, "postgres", "Options for Single-User Mode". Without exit_on_error an error would not set the exit status. */
const SINGLE = [
  ...['--single', '-D', at.data, '-c', 'exit_on_error=on', '-c', 'fsync=off'],
  // Failed statements are not logged, as they contain a secret.
  ...['-c', 'log_min_error_statement=panic'],
]

async function passwordStatement({ user, password }: AdminCredentials): Promise<string> {
  const verifier = pg.escapeLiteral(await createScram().verifier(password))
  return `ALTER ROLE ${pg.escapeIdentifier(user)} PASSWORD ${verifier}\n`
}

/**
 * Settings of a recovery, which ends before the server accepts connections, and needs no hot standby. No library that the restored
 * configuration names is loaded.
 */
const RECOVERING = [
  ...['hot_standby=off', 'shared_buffers=128MB', 'log_min_messages=log', 'archive_mode=off', 'archive_cleanup_command='],
  // A confined program has no named shared memory.
  'dynamic_shared_memory_type=mmap',
  ...['shared_preload_libraries=', 'session_preload_libraries=', 'local_preload_libraries='],
].flatMap((setting) => ['-c', setting])

/**
 * Removes the free space maps and visibility maps of initdb's last VACUUM, which PostgreSQL does not need (PostgreSQL, "Free Space Map",
 * "Visibility Map"). They are a quarter of a database's files, and creating files is most of a database's cost.
 */
async function trim(data: string): Promise<void> {
  const files = await readdir(join(data, 'base'), { recursive: true })
  await Promise.all(files.filter((name) => /_(?:fsm|vm)$/.test(name)).map((name) => unlink(join(data, 'base', name))))
}

const FLUSH = { file: 'native/bin/initdb', args: ['-D', at.data, '--sync-only'] }

const cloneable: Cloneable = {
  setPassword: async (admin) => ({
    command: { file: 'native/bin/postgres', args: [...SINGLE, 'postgres'] },
    input: await passwordStatement(admin),
  }),
  flush: FLUSH,
}

export const postgresql: EngineProgram = {
  // C libraries older than 2.35 may not know C.UTF-8.
  initialise: (user) => ['C.UTF-8', 'C'].map((locale) => ({ file: 'native/bin/initdb', args: initialise(user, locale) })),
  trim,
  cloneable,
  recover: async (admin) => ({
    command: { file: 'native/bin/postgres', args: [...SINGLE, ...RECOVERING, 'postgres'] },
    input: await passwordStatement(admin),
    flush: FLUSH,
  }),
  configure,
  accessFile,
  serve: { file: 'native/bin/postgres', args: ['-D', at.data, '-c', `config_file=${at.config}/${CONFIG}`] },
  // The first line is the pid (PostgreSQL, miscadmin.h, LOCK_FILE_LINE_PID).
  mainPid: (data) => readPid(join(data, 'postmaster.pid')),
  logIn: logInToPostgresql,
  signals: { reload: 'SIGHUP', fast: 'SIGINT', immediate: 'SIGQUIT' },
  isShowable: (line) => /\b(FATAL|PANIC|LOG|WARNING|HINT): /.test(line) || /^(initdb|postgres): /.test(line),
}

const TIMEOUT_MS = 2000

/** Codes of a server that is not up yet: no listener, a broken connection, `cannot_connect_now`. The driver's time-out has no code. */
const NOT_YET = new Set<string | undefined>([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  // The host name or the route is unknown yet: a pod's are created together with the pod.
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  '57P01',
  '57P02',
  '57P03',
  undefined,
])
/** Code `too_many_connections`: the server is up. */
const BUSY = '53300'

type OnCertificate = (certificate: X509Certificate) => void

/** Tries one login as the admin. `onCertificate` receives the certificate of a server with TLS, if the CA signed it. */
export async function logInToPostgresql(
  { ca, client: own, ...target }: AdminTarget,
  onCertificate?: OnCertificate,
): Promise<LoginAttempt> {
  const client = new pg.Client({
    ...target,
    database: 'postgres',
    application_name: 'mooring',
    connectionTimeoutMillis: TIMEOUT_MS,
    ...(ca !== undefined && { ssl: tlsOf({ ca, client: own }, onCertificate) }),
  })
  // A broken connection emits another error after the reported one.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { login: 'accepted' }
  } catch (error) {
    const code = codeOf(error)
    if (NOT_YET.has(code)) return { login: 'notYet' }
    return code === BUSY ? { login: 'accepted' } : { login: 'refused', code: code ?? 'unknown' }
  } finally {
    await client.end().catch(() => undefined)
  }
}

function tlsOf(target: Pick<AdminTarget, 'ca' | 'client'>, onCertificate: OnCertificate = () => undefined): ConnectionOptions {
  return {
    ...tlsTo(target),
    checkServerIdentity(host, shown) {
      onCertificate(new X509Certificate(shown.raw))
      return checkServerIdentity(host, shown)
    },
  }
}
