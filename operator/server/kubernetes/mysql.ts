import { AFTER_SCRIPTS, BEFORE_SCRIPTS, BOOTSTRAP, SCRIPTS, UNDO_TABLESPACES } from '../../engines/mysql/bootstrap.ts'
import type { MysqlFamily } from '../../engines/mysql/catalog.ts'
import { logInAsAdmin, TIMEOUTS } from '../../engines/mysql/connection.ts'
import { Errno, errnoOf } from '../../engines/mysql/errors.ts'
import { adminSql, hasAdminPort, mysqlSettings, optionFile, SOCKET } from '../../engines/mysql/settings.ts'
import { serveRequestsScript } from '../../engines/mysql/stray-directories.ts'
import { logInToMysql, mysql } from '../process/programs/mysql.ts'
import { at, type EngineFiles, type EnginePod } from './engine-pod.ts'
import { flush, keepReserve, readPassword, refuseOtherSeries } from './scripts.ts'

const PORT = 3306
/** Port for the administrator alone: that of MySQL by default. */
const ADMIN_PORT = 33_062
/** Mount path of the volume; that of the official images. */
const MOUNT = '/var/lib/mysql'
/** Data directory. The server takes each directory in it for a database, so it cannot be the mount itself, which may have `lost+found`. */
const DATA = `${MOUNT}/data`
const OPTIONS = 'my.cnf'
const ADMIN = 'admin.sql'
const INITIALISE = 'initialise.sh'
const SERVE = 'serve.sh'

/** Directories in which images have MariaDB's scripts. */
const SHARES = ['/usr/share/mysql', '/usr/share/mariadb']

/** Line that creates a data directory whose only account, root without a password, is dropped before the server accepts connections. */
const makeMysql = `mysqld --no-defaults --initialize-insecure --datadir=${DATA}.new --loose-auto-generate-certs=OFF ${UNDO_TABLESPACES}`

/** Lines that do what `mariadb-install-db` does. A script that is missing would go unnoticed: only the last command of a pipe counts. */
const makeMariadb = `for share in ${SHARES.join(' ')}; do
    [ ! -r $share/${SCRIPTS[0] ?? ''}.sql ] || break
  done
  for script in ${SCRIPTS.join(' ')}; do
    [ -r $share/$script.sql ] || { echo "FATAL: this image has no $share/$script.sql" >&2; exit 1; }
  done
  {
    printf '%s\\n' ${BEFORE_SCRIPTS.map((line) => `'${line}'`).join(' ')}
    cat ${SCRIPTS.map((name) => `$share/${name}.sql`).join(' ')}
    printf '%s\\n' "${AFTER_SCRIPTS.join(' ')}"
  } | mariadbd --no-defaults --bootstrap --datadir=${DATA}.new --tmpdir=${DATA}.new ${BOOTSTRAP.join(' ')}`

/**
 * Script that creates the data directory under a temporary name, and renames it when all of it is durable: a directory named `DATA` is
 * complete. Then, at each start, it writes the statements that give the admin the password of its Secret: in the form that the server stores,
 * the SHA-1 of the SHA-1 (nativeHash in engines/mysql/settings.ts).
 */
const initialise = (family: MysqlFamily, { admin, tls }: EngineFiles): string => `set -eu
umask 077
${refuseOtherSeries({ family, mount: MOUNT, data: DATA, program: PROGRAMS[family], before: 'Ver ' })}if [ ! -d ${DATA} ]; then
  rm -rf ${DATA}.new
  mkdir ${DATA}.new
  ${family === 'mariadb' ? makeMariadb : makeMysql}
  ${flush(MOUNT)}
  mv ${DATA}.new ${DATA}
  ${flush(MOUNT)}
fi
${readPassword}rest=$(printf %s "$password" | sha1sum)
rest=\${rest%% *}
bytes=
while [ -n "$rest" ]; do
  tail=\${rest#??}
  bytes="$bytes\\\\$(printf %03o "0x\${rest%"$tail"}")"
  rest=$tail
done
hash=$(printf "$bytes" | sha1sum | tr a-f A-F)
hash="*\${hash%% *}"
cat >${at.output}/${ADMIN} <<END
${adminSql({ family, user: admin, hash: '$hash', host: '%', certified: tls })}END
`

/** Options that MySQL knows without, and MariaDB needs: a directory that its file functions are confined to. This one holds no secret. */
const CONFINED = { mysql: '', mariadb: ` --secure-file-priv=${at.config}` } as const
const PROGRAMS = { mysql: 'mysqld', mariadb: 'mariadbd' } as const

/** Option with the address of the administrator's port of MySQL, which must be one: that of the host name, which the runtime keeps in /etc/hosts. */
const ADMIN_ADDRESS = ' --loose-admin-address="$HOSTNAME"'

/** Script that starts the server. A lock of a killed server has the pid of this one. */
const serve = (
  family: MysqlFamily,
  adminPort: number | undefined,
): string => `${keepReserve(MOUNT)}${family === 'mysql' ? serveRequestsScript(DATA) : ''}rm -f ${DATA}/${SOCKET}.lock
exec ${PROGRAMS[family]} --defaults-file=${at.config}/${OPTIONS}${CONFINED[family]}${family === 'mysql' && adminPort !== undefined ? ADMIN_ADDRESS : ''}
`

/** Statements that load the certificate again: MySQL from 8.0.16 on, MariaDB from 10.4 on. */
const RELOAD = { mysql: 'ALTER INSTANCE RELOAD TLS', mariadb: 'flush SSL' } as const

const podOf = (family: MysqlFamily): EnginePod => ({
  name: family,
  port: PORT,
  adminPort: (version) => (hasAdminPort(family, version) ? ADMIN_PORT : undefined),
  dataMount: MOUNT,
  // MySQL with OpenSSL 1.0 completes no handshake with an elliptic key.
  key: 'rsa',
  outputAt: () => at.prepared,
  files(about) {
    const tls = {
      certFile: `${at.certificate}/tls.crt`,
      keyFile: `${at.certificate}/tls.key`,
      caFile: `${at.certificate}/ca.crt`,
    }
    const settings = mysqlSettings({
      family,
      listen: '*',
      port: PORT,
      data: DATA,
      tenants: about.capacity,
      size: about.size,
      tls: about.tls ? tls : undefined,
      own: about.adminPort === undefined ? undefined : { port: about.adminPort },
      initFile: `${at.prepared}/${ADMIN}`,
      isRestricted: about.access !== undefined,
    })
    return {
      [OPTIONS]: optionFile(settings),
      [INITIALISE]: initialise(family, about),
      [SERVE]: serve(family, about.adminPort),
    }
  },
  initialise: ['sh', `${at.config}/${INITIALISE}`],
  serve: ['sh', `${at.config}/${SERVE}`],
  stop: ['sh', '-c', 'kill -TERM 1'],
  logIn: logInToMysql,
  refusals: { password: 'ER_ACCESS_DENIED_ERROR', handshake: 'HANDSHAKE_SSL_ERROR' },
  async reload(target) {
    const client = await logInAsAdmin(target, TIMEOUTS)
    try {
      await client.query(RELOAD[family])
      return true
    } catch (error) {
      if (errnoOf(error) === Errno.syntaxError) return false
      throw error
    } finally {
      await client.end()
    }
  },
  isShowable: (line) => line.startsWith('FATAL: ') || mysql.isShowable(line),
})

export const mysqlPod = podOf('mysql')
export const mariadbPod = podOf('mariadb')
