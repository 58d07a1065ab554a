import { readFile, rm } from 'node:fs/promises'
import type { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import type { Connection } from 'mysql2/promise'
import { isLoopback } from '../../../../crds/formats/address-list.ts'
import { adminHost } from '../address.ts'
import type { MysqlFamily } from '../../../engines/mysql/catalog.ts'
import {
  adminSql,
  hasAdminPort,
  mysqlSettings,
  nativeHash,
  optionFile,
  PID_FILE,
  SOCKET,
} from '../../../engines/mysql/settings.ts'
import { serveRequests } from '../../../engines/mysql/stray-directories.ts'
import { AFTER_SCRIPTS, BEFORE_SCRIPTS, BOOTSTRAP, SCRIPTS, UNDO_TABLESPACES } from '../../../engines/mysql/bootstrap.ts'
import { readPid } from '../spawn/proc.ts'
import { at, type ConfigFile, type DesiredConfig, type EngineProgram, type Initialisation, type LoginAttempt } from './program.ts'
import type { AdminTarget } from '../../../engines/engine.ts'
import { logInAsAdmin, TIMEOUTS } from '../../../engines/mysql/connection.ts'
import { Errno, errnoOf } from '../../../engines/mysql/errors.ts'
import { codeOf } from '../../../../shared/errors.ts'

const OPTIONS = 'my.cnf'
const ADMIN = 'admin.sql'

const configure =
  (family: MysqlFamily) =>
  ({ listen, port, adminPort, admin, password, capacity, size, certificate, access }: DesiredConfig): readonly ConfigFile[] => {
    const settings = mysqlSettings({
      family,
      listen,
      port,
      data: at.data,
      tenants: capacity,
      size,
      own: adminPort === undefined ? undefined : { address: adminHost(listen), port: adminPort },
      tls: { certFile: `${at.config}/server.crt`, keyFile: `${at.config}/server.key` },
      initFile: `${at.config}/${ADMIN}`,
      logFile: `${at.log}/mysqld.log`,
      isRestricted: access !== undefined,
    })
    return [
      { name: OPTIONS, content: optionFile(settings) },
      {
        name: ADMIN,
        content: adminSql({ family, user: admin, hash: nativeHash(password), host: adminHost(listen) }),
        secret: true,
      },
      { name: 'server.crt', content: certificate.certificate },
      { name: 'server.key', content: certificate.key, secret: true },
    ]
  }

/** Options with the paths of the files of an installation. */
const FILES = [
  `--basedir=${at.installation}`,
  `--lc-messages-dir=${at.installation}/share`,
  `--character-sets-dir=${at.installation}/share/charsets`,
]
/** Only an installation of MariaDB has plugins. */
const MARIADB_FILES = [...FILES, `--plugin-dir=${at.installation}/plugin`]

/** Creates MySQL's data directory. Its only account, root without a password, is dropped before the server accepts connections. */
const initialiseMysql: Initialisation = {
  file: 'bin/mysqld',
  args: [
    '--no-defaults',
    '--initialize-insecure',
    ...FILES,
    `--datadir=${at.data}`,
    '--loose-auto-generate-certs=OFF',
    UNDO_TABLESPACES,
  ],
}

/** Creates MariaDB's data directory as `mariadb-install-db` does, without its shell script: one statement a line on standard input. */
const initialiseMariadb: Initialisation = {
  file: 'bin/mariadbd',
  args: [...['--no-defaults', '--bootstrap', ...MARIADB_FILES, `--datadir=${at.data}`, `--tmpdir=${at.data}`], ...BOOTSTRAP],
  async input(installation) {
    const scripts = await Promise.all(SCRIPTS.map((name) => readFile(join(installation, 'share', `${name}.sql`), 'utf8')))
    return [...BEFORE_SCRIPTS, ...scripts, ...AFTER_SCRIPTS, ''].join('\n')
  },
}

/** Files of a new data directory that identify a server. A copy generates its own at its first start. */
const IDENTITY = [
  'auto.cnf',
  ...['private_key.pem', 'public_key.pem', 'ca.pem', 'ca-key.pem'],
  ...['server-cert.pem', 'server-key.pem', 'client-cert.pem', 'client-key.pem'],
]

/** Flushes each file of a data directory, and the directories. */
const FLUSH = { file: '/bin/sh', args: ['-c', `cd ${at.data} && exec find . -exec sync {} +`] }

const programOf = (family: MysqlFamily, initialise: Initialisation, serve: EngineProgram['serve']): EngineProgram => ({
  needsPath: true,
  initialise: () => [initialise],
  trim: async (data) => {
    for (const name of IDENTITY) await rm(join(data, name), { force: true })
  },
  cloneable: { flush: FLUSH },
  // MySQL with OpenSSL 1.0 completes no handshake with an elliptic key.
  key: 'rsa',
  tlsOnly: true,
  hasAdminPort: ({ version, listen }) =>
    hasAdminPort(family, version) && isLoopback(family === 'mariadb' ? listen : adminHost(listen)),
  configure: configure(family),
  serve,
  // MySQL does not start while another process has the pid that a killed server left in the lock file of its socket.
  clear: (data) => rm(join(data, `${SOCKET}.lock`), { force: true }),
  ...(family === 'mysql' && { attend: serveRequests }),
  mainPid: (data) => readPid(join(data, PID_FILE)),
  logIn: (target) => logInToMysql(target),
  // SIGHUP would flush tables and wait for statements of tenants. No signal reloads settings or certificates, so this one has no effect.
  signals: { reload: 'SIGCONT', fast: 'SIGTERM', immediate: 'SIGKILL' },
  // A deadlock in the server, which InnoDB notices only after ten minutes (`innodb_fatal_semaphore_wait_threshold`).
  mayHang: true,
  isShowable: (line) =>
    line.includes('[ERROR]') || line.includes('error while loading') || /^(unshare|mount|setpriv): /.test(line),
})

const SERVE = [`--defaults-file=${at.config}/${OPTIONS}`]

export const mysql = programOf('mysql', initialiseMysql, { file: 'bin/mysqld', args: [...SERVE, ...FILES] })

export const mariadb = programOf('mariadb', initialiseMariadb, {
  file: 'bin/mariadbd',
  // MariaDB needs a directory to confine its file functions to; this one holds no secret and is not writable.
  args: [...SERVE, ...MARIADB_FILES, `--secure-file-priv=${at.installation}/share/charsets`],
})

const TIMEOUT_MS = 2000

/** Errors of a server that is up: its connections are used up. */
const BUSY: readonly unknown[] = [Errno.tooManyConnections, Errno.tooManyUserConnections]

/** Codes of the driver for a server without TLS, or with which no handshake succeeds: its TLS is too old, or our CA did not sign its certificate. */
const NO_TLS: readonly unknown[] = ['HANDSHAKE_NO_SSL_SUPPORT', 'HANDSHAKE_SSL_ERROR']

/** Tries one login as the admin. `onCertificate` receives the certificate that a server with TLS showed, if it is trusted. */
export async function logInToMysql(
  target: AdminTarget,
  onCertificate?: (certificate: X509Certificate) => void,
): Promise<LoginAttempt> {
  try {
    const client = await logInAsAdmin(target, { ...TIMEOUTS, connectMs: TIMEOUT_MS })
    const shown = certificateOf(client)
    if (shown) onCertificate?.(shown)
    await client.end()
    return { login: 'accepted' }
  } catch (error) {
    const errno = errnoOf(error)
    if (BUSY.includes(errno)) return { login: 'accepted' }
    // Errors without a number of the server concern the connection: refused, reset, timeout, a name that is unknown yet.
    const code = codeOf(error)
    if (code !== undefined && NO_TLS.includes(code)) return { login: 'refused', code }
    if (errno === undefined || errno === Errno.shutdown) return { login: 'notYet' }
    return { login: 'refused', code: code ?? `${errno}` }
  }
}

/** Certificate of the server of a connection; undefined without TLS. */
function certificateOf(client: Connection): X509Certificate | undefined {
  // The driver's types do not declare the socket.
  const { connection } = client as unknown as { readonly connection: { readonly stream: unknown } }
  const { stream } = connection
  return stream instanceof TLSSocket ? stream.getPeerX509Certificate() : undefined
}
