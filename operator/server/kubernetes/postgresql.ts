import pg from 'pg'
import { partsOf } from '../../../crds/motor.ts'
import { dialling, TIMEOUTS } from '../../engines/postgresql/connection.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../engines/postgresql/settings.ts'
import { postgresql, logInToPostgresql } from '../process/programs/postgresql.ts'
import { at, type EnginePod } from './engine-pod.ts'

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
rm -rf ${at.replacement}/*
cp -R "$found/." ${at.replacement}
for file in ${at.replacement}/*.control; do
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in trusted*|[!a-z]*trusted*) ;; *) printf '%s\\n' "$line";; esac
  done <"$file" >"$file.new"
  mv "$file.new" "$file"
done
`

/**
 * Script that creates the data directory under a temporary name, and renames it when all of it is durable: a directory named `DATA` is
 * complete. It is trimmed as in embedded mode (process/programs/postgresql.ts). The kubelet gives the volume's files to the group at every
 * mount; PostgreSQL rejects a directory that its group may write to.
 *
 * Each later start sets the admin's password to that of its Secret, which may have changed: in single-user mode the server requires no
 * login. It uses the settings of the server itself, as it may have to recover from a crash.
 */
const script = (admin: string, extensions: string | undefined): string => `set -eu
${extensions === undefined ? '' : distrustExtensions(extensions)}admin=${quoted(admin)}
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
password=
IFS= read -r password <${at.admin}/password || [ -n "$password" ]
quote="'"
literal=
while [ "$password" != "\${password#*"$quote"}" ]; do
  literal="$literal\${password%%"$quote"*}$quote$quote"
  password="\${password#*"$quote"}"
done
printf '%s\\n' "ALTER ROLE $role PASSWORD '$literal$password'" |
  postgres --single -D ${DATA} -c config_file=${at.config}/${CONFIG} -c exit_on_error=on postgres >/dev/null
`

/**
 * Script that starts the server. A file beside the data reserves 48 MiB: PostgreSQL ends when it cannot write its WAL, and cannot start on
 * a full volume, so one tenant could take all others offline until an administrator intervenes (process/files/reserve.ts).
 */
const serve = `has_room() {
  dd if=/dev/zero of=${MOUNT}/probe bs=1048576 count="$1" 2>/dev/null
  set -- $?
  rm -f ${MOUNT}/probe
  return "$1"
}
if ! has_room 32; then
  rm -f ${MOUNT}/reserve
  echo 'LOG:  volume full: the reserve was released' >&2
elif [ ! -e ${MOUNT}/reserve ] && has_room 192; then
  dd if=/dev/zero of=${MOUNT}/reserve.new bs=1048576 count=48 2>/dev/null && mv ${MOUNT}/reserve.new ${MOUNT}/reserve
fi
exec postgres -D ${DATA} -c config_file=${at.config}/${CONFIG}
`

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

export const postgresqlPod: EnginePod = {
  name: 'postgresql',
  port: PORT,
  dataMount: MOUNT,
  replaces: (motor) => `/usr/share/postgresql/${partsOf(motor).version.split('.')[0] ?? ''}/extension`,
  files({ admin, capacity, own, replaced }) {
    const settings = postgresqlSettings({
      listen: '*',
      port: PORT,
      hbaFile: `${at.config}/${HBA}`,
      tls: { certFile: `${at.certificate}/tls.crt`, keyFile: `${at.certificate}/tls.key`, caFile: `${at.certificate}/ca.crt` },
      tenants: capacity,
    })
    return {
      [CONFIG]: postgresqlConf(settings),
      [HBA]: postgresqlHba({ admin, reach: 'tls', own }),
      [INITIALISE]: script(admin, replaced),
      [SERVE]: serve,
    }
  },
  initialise: ['sh', `${at.config}/${INITIALISE}`],
  serve: ['sh', `${at.config}/${SERVE}`],
  // The default stop signal makes PostgreSQL wait for its last client.
  stop: ['sh', '-c', 'kill -INT 1'],
  logIn: logInToPostgresql,
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
    } finally {
      await client.end()
    }
  },
  isShowable: (line) => postgresql.isShowable(line),
}
