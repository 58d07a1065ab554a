import pg from 'pg'
import { partsOf } from '../../../crds/motor.ts'
import { dialling, TIMEOUTS } from '../../engines/postgresql/connection.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../engines/postgresql/settings.ts'
import { postgresql, logInToPostgresql } from '../process/programs/postgresql.ts'
import { archiveSettings } from '../../../backup/postgresql/settings.ts'
import { SPOOL, spoolLimits } from '../archive.ts'
import { at, type EnginePod } from './engine-pod.ts'
import { keepReserve, quoted, readPassword, refuseOtherPostgresql } from './scripts.ts'

const PORT = 5432
/** Mount path of the volume; that of the official image, which would otherwise get a second volume. */
const MOUNT = '/var/lib/postgresql/data'
/** Data directory below the mount: a file system's root may hold entries such as `lost+found`, and belongs to the kubelet's group. */
const DATA = `${MOUNT}/pgdata`
const CONFIG = 'postgresql.conf'
const HBA = 'pg_hba.conf'
const INITIALISE = 'initialise.sh'
const SERVE = 'serve.sh'

/**
 * Script that copies the extension files of the image without the mark by which a tenant may install an extension whose script then runs as
 * superuser (docs/isolation.md). The server mounts the copy over the originals. `initdb -s` prints their path in the image.
 */
const distrustExtensions = (expected: string): string => `expected=${quoted(expected)}
share=$(initdb -s -D /tmp/none 2>&1 | while IFS= read -r line; do
  case $line in share_path=*) printf '%s' "\${line#share_path=}";; esac
done)
found=$(cd "$share/extension" && pwd -P)
if [ "$found" != "$expected" ]; then
  echo "FATAL:  this image has its extensions in $found, not in $expected: set spec.motors[].extensionDirectory of the Region" >&2
  exit 1
fi
rm -rf ${at.output}/*
cp -R "$found/." ${at.output}
for file in ${at.output}/*.control; do
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in trusted*|[!a-z]*trusted*) ;; *) printf '%s\\n' "$line";; esac
  done <"$file" >"$file.new"
  mv "$file.new" "$file"
done
`

/**
 * Script that copies the program with the libraries and files that it needs, for the scratch servers of the backup agent, whose image has no
 * PostgreSQL. The copy uses the image's own dynamic linker, as the C libraries of the images may differ. A failure costs restore drills only.
 */
const copyProgram = `copy_program() {
  program=$(readlink -f "$(command -v postgres)")
  shared=$(initdb -s -D /tmp/none 2>&1 | sed -n 's/^share_path=//p')
  linker=
  for file in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* /lib/ld-musl-*.so.*; do [ ! -x "$file" ] || linker=$file; done
  [ -n "$linker" ] && [ -n "$shared" ] || return 1
  home=$(dirname "$(dirname "$program")")
  mkdir -p "${at.engine}$home/bin" "${at.engine}$home/lib/postgresql" "${at.engine}$shared" ${at.engine}/lib || return 1
  cp "$program" "${at.engine}$program" && cp -RL "$shared/timezonesets" "${at.engine}$shared/" || return 1
  # Debian has the time zones of the system instead.
  [ ! -d "$shared/timezone" ] || cp -RL "$shared/timezone" "${at.engine}$shared/" || return 1
  cp -L "$linker" ${at.engine}/linker || return 1
  for library in $("$linker" --list "$program" | sed -n 's/.* => \\(\\/[^ ]*\\).*/\\1/p'); do cp -L "$library" ${at.engine}/lib/ || return 1; done
  printf '#!/bin/sh\nexec ${at.engine}/linker --library-path ${at.engine}/lib ${at.engine}%s "$@"\n' "$program" >${at.engine}/postgres
  chmod 0755 ${at.engine}/postgres
}
(copy_program) || echo 'WARNING:  the program could not be copied: there are no restore drills' >&2
`

/**
 * Script that creates the data directory under a temporary name, and renames it when all of it is durable: a directory named `DATA` is
 * complete. It is trimmed as in embedded mode (process/programs/postgresql.ts). The kubelet gives the volume's files to the group at every
 * mount; PostgreSQL rejects a directory that its group may write to.
 *
 * Each later start sets the admin's password to that of its Secret, which may have changed: in single-user mode the server requires no
 * login. It uses the settings of the server itself, as it may have to recover from a crash.
 */
const script = (admin: string, extensions: string | undefined, archives: boolean): string => `set -eu
${refuseOtherPostgresql(DATA)}${extensions === undefined ? '' : distrustExtensions(extensions)}${archives ? copyProgram : ''}admin=${quoted(admin)}
role=${quoted(`"${admin.replaceAll('"', '""')}"`)}
umask 077
if [ ! -d ${DATA} ]; then
  make() {
    rm -rf ${DATA}.new
    initdb -D ${DATA}.new -U "$admin" --auth=scram-sha-256 --pwfile=${at.admin}/password -E UTF8 --locale="$1" --no-instructions
  }
  # A C library older than 2.35 may not know C.UTF-8.
  make C.UTF-8 || make C
  rm -f ${DATA}.new/base/*/*_fsm ${DATA}.new/base/*/*_vm
  mv ${DATA}.new ${DATA}
  sync ${MOUNT} || sync
  chmod 0700 ${DATA}
  exit 0
fi
chmod 0700 ${DATA}
${readPassword}quote="'"
literal=
while [ "$password" != "\${password#*"$quote"}" ]; do
  literal="$literal\${password%%"$quote"*}$quote$quote"
  password="\${password#*"$quote"}"
done
printf '%s\\n' "ALTER ROLE $role PASSWORD '$literal$password'" |
  postgres --single -D ${DATA} -c config_file=${at.config}/${CONFIG} -c exit_on_error=on postgres >/dev/null
`

/** Script that starts the server. */
const serve = `${keepReserve(MOUNT)}exec postgres -D ${DATA} -c config_file=${at.config}/${CONFIG}
`

export const postgresqlPod: EnginePod = {
  name: 'postgresql',
  port: PORT,
  dataMount: MOUNT,
  dataDirectory: DATA,
  key: 'elliptic',
  // The server sees the copy of the extension files in place of the image's own.
  outputAt: (motor, extensionDirectory) =>
    extensionDirectory ?? `/usr/share/postgresql/${partsOf(motor).version.split('.')[0] ?? ''}/extension`,
  files({ admin, capacity, size, own, outputAt, archives, tls, access, hasExporter }) {
    const settings = postgresqlSettings({
      listen: '*',
      port: PORT,
      hbaFile: `${at.config}/${HBA}`,
      tls: { certFile: `${at.certificate}/tls.crt`, keyFile: `${at.certificate}/tls.key`, caFile: `${at.certificate}/ca.crt` },
      tenants: capacity,
      size,
      archive: archives ? { ...archiveSettings(SPOOL, spoolLimits(size)), unix_socket_directories: at.socket } : undefined,
    })
    const hba = postgresqlHba({ admin, reach: tls ? 'tls' : 'published', own, access, hasExporter })
    return {
      [CONFIG]: postgresqlConf(settings),
      // Only the containers of the pod that mount the directory of the socket reach it.
      [HBA]: archives ? `${hba}local all "${admin.replaceAll('"', '""')}" scram-sha-256\n` : hba,
      [INITIALISE]: script(admin, outputAt, archives === true),
      [SERVE]: serve,
    }
  },
  accessFile: HBA,
  initialise: ['sh', `${at.config}/${INITIALISE}`],
  serve: ['sh', `${at.config}/${SERVE}`],
  // The default stop signal makes PostgreSQL wait for its last client.
  stop: ['sh', '-c', 'kill -INT 1'],
  logIn: logInToPostgresql,
  refusals: { password: '28P01' },
  async reload(target) {
    const client = new pg.Client({
      ...dialling(target, TIMEOUTS),
      user: target.user,
      password: target.password,
      database: 'postgres',
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await client.query('SELECT pg_catalog.pg_reload_conf()')
      return true
    } finally {
      await client.end()
    }
  },
  isShowable: (line) => postgresql.isShowable(line),
}
