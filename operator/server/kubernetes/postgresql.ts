import pg from 'pg'
import { partsOf } from '../../../crds/motor.ts'
import { dialling, TIMEOUTS } from '../../engines/postgresql/connection.ts'
import { postgresqlConf, postgresqlHba, postgresqlSettings } from '../../engines/postgresql/settings.ts'
import { postgresql } from '../process/programs/postgresql.ts'
import { logInToPostgresql } from '../process/programs/postgresql-login.ts'
import { at, type EnginePod } from './engine-pod.ts'

const PORT = 5432
/** Where the official image has its volume, so that no second one is made for it. */
const MOUNT = '/var/lib/postgresql/data'
/** A file system may have entries of its own at its root, such as `lost+found`, and its root belongs to the kubelet's group. */
const DATA = `${MOUNT}/pgdata`
const CONFIG = 'postgresql.conf'
const HBA = 'pg_hba.conf'
const INITIALISE = 'initialise.sh'
const SERVE = 'serve.sh'

/**
 * Copies the extension files of the image without the mark by which a tenant may install an extension whose script then runs as superuser
 * (docs/isolation.md, "Extensions"). The server has the copy in their place. `initdb -s` says where the image has them.
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
 * Makes the data directory under another name, and gives it its own when every byte of it is on the disk: whatever is called `DATA`
 * is whole. It is trimmed as the other home's is (process/postgresql.ts). The kubelet gives a volume's files to the group at every
 * mount; PostgreSQL refuses a directory that the group may write to.
 *
 * At every later start the admin gets the password of its Secret, which may be another one by now: a server alone with its data asks for
 * none. It runs with the settings of the server itself, because it may have a crash of that one to recover from.
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
 * Starts the server. A file beside its data takes 48 MiB for bad times: a server that cannot write its log ends, and cannot start on a full
 * volume either, so that one tenant who fills the volume would keep all others out until a person came (process/reserve.ts).
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
  // The signal that ends a container would let PostgreSQL wait for its last client.
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
