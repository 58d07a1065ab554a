import { KEY_FILE_LABEL, mongodConf } from '../../engines/mongodb/settings.ts'
import { logInToMongodb, mongodb } from '../process/programs/mongodb.ts'
import { at, type EnginePod } from './engine-pod.ts'
import { keepReserve, quoted, readPassword, refuseOtherSeries } from './scripts.ts'

const PORT = 27_017
/** Mount path of the volume; that of the official image. */
const MOUNT = '/data/db'
/** Data directory below the mount, which may have `lost+found`. */
const DATA = `${MOUNT}/mongodb`
const CONFIG = 'mongod.conf'
const KEY_FILE = 'keyfile'
const INITIALISE = 'initialise.sh'
const SERVE = 'serve.sh'

/** Script that writes the key file (keyFileFor in engines/mongodb/settings.ts). The server fills an empty directory itself. */
const initialise = `set -eu
umask 077
${refuseOtherSeries({ family: 'mongodb', mount: MOUNT, data: DATA, program: 'mongod', before: 'db version v' })}mkdir -p ${DATA}
${readPassword}key=$(printf %s ${quoted(KEY_FILE_LABEL)}"$password" | sha512sum)
printf %s "\${key%% *}" >${at.output}/${KEY_FILE}
`

/** Script that starts the server. */
const serve = `${keepReserve(MOUNT)}exec mongod --config ${at.config}/${CONFIG}
`

export const mongodbPod: EnginePod = {
  name: 'mongodb',
  port: PORT,
  dataMount: MOUNT,
  key: 'elliptic',
  outputAt: () => at.prepared,
  files({ capacity, size, tls, hasExporter }) {
    const conf = mongodConf({
      listen: '0.0.0.0',
      port: PORT,
      dataDirectory: DATA,
      tenants: capacity,
      size,
      hasExporter,
      keyFile: `${at.prepared}/${KEY_FILE}`,
      tls: tls ? { certificateKeyFile: `${at.certificate}/tls.pem`, caFile: `${at.certificate}/ca.crt` } : undefined,
    })
    return { [CONFIG]: conf, [INITIALISE]: initialise, [SERVE]: serve }
  },
  initialise: ['sh', `${at.config}/${INITIALISE}`],
  serve: ['sh', `${at.config}/${SERVE}`],
  stop: ['sh', '-c', 'kill -TERM 1'],
  // A pod reaches itself by no other address: its Service is behind its NetworkPolicy.
  logIn: (target, onCertificate) => logInToMongodb(target, { member: `127.0.0.1:${PORT}`, onCertificate }),
  // AuthenticationFailed of MongoDB.
  refusals: { password: '18' },
  // Each login of the admin makes the server load its certificate (engines/mongodb/replica-set.ts).
  reload: () => Promise.resolve(true),
  isShowable: (line) => mongodb.isShowable(line),
}
