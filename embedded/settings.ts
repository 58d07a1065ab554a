import { z } from 'zod'
import { API_SETTINGS, smallBursts } from '../apiserver/settings.ts'
import { SERVER_SETTINGS } from '../operator/settings.ts'
import { LOG_SETTINGS } from '../process/run.ts'
import {
  Address,
  Domain,
  ListenPort,
  Motors,
  OptionalPort,
  OwnEngines,
  Path,
  privateAddressesSetting,
  PublicHost,
  Switch,
} from '../process/setting-rules.ts'
import { ACME_SETTINGS, acmeConflicts } from './acme/acme-settings.ts'
import { TLS_FILE_SETTINGS, tlsFileConflicts } from './tls-files.ts'
import { parseS3Url, S3_RULE } from '../backup/repository/open.ts'
import { createSettingsParser, samePorts, setting, type SettingsOf, withDefault } from '../process/settings.ts'

const S3Url = z.string().refine((text) => parseS3Url(text) !== undefined, S3_RULE)

const port = (initial: string, about: string) => withDefault(ListenPort, '<port>', [initial, about])
const optionalPort = (initial: string, about: string) => withDefault(OptionalPort, '<port>', [initial, about])

/** Settings of embedded mode (docs/install.md). */
const SETTINGS = {
  dataDir: withDefault(Path, '<path>', ['.mooring', 'directory of all state']),
  listen: withDefault(Address, '<address>', ['127.0.0.1', 'address that the HTTPS listeners and the databases listen on']),
  publicHost: setting(
    PublicHost,
    '<host>',
    'host name or IP address in connection data for SSH and databases; default: --listen, or the first address that other machines can reach',
  ),
  sharedPort: port('8443', 'HTTPS port of the shared API'),
  dedicatedPort: port('8444', 'HTTPS port of the dedicated API'),
  sharedHttpPort: optionalPort('8080', 'plain HTTP port of the shared API, loopback only; 0 = off'),
  dedicatedHttpPort: optionalPort('8081', 'plain HTTP port of the dedicated API, loopback only; 0 = off'),
  sshPort: port('22222', 'SSH port of the edge'),
  httpPort: port('28080', 'HTTP port of the edge'),
  httpsPort: port('28443', 'HTTPS port of the edge'),
  metricsPort: port('9464', 'port of the Prometheus metrics, loopback only'),
  domain: withDefault(Domain, '<name>', ['tunnel.localhost', 'domain of the tunnel endpoint']),
  ...ACME_SETTINGS,
  ...TLS_FILE_SETTINGS,
  compatibleMotors: withDefault(Switch, '[on|off]', [
    'off',
    'serve a missing version of a motor with the nearest one of its series',
  ]),
  engine: {
    ...withDefault(OwnEngines, '<motor>=<program>', [
      '',
      "server program of this machine that serves a motor, such as mysql-8.0.29=/usr/sbin/mysqld, or docker[:<image>]: the official image, or another, by the machine's Docker; repeatable",
    ]),
    repeated: true,
  },
  enginesCache: setting(
    Path,
    '<path>',
    "directory that npm run engines installs into; default: mooring/engines in the user's cache",
  ),
  warm: {
    ...withDefault(Motors, '<motor>', ['postgresql-15.4.0', 'motor whose server runs before the first request; repeatable']),
    repeated: true,
  },
  backupDir: setting(
    Path,
    '<path>',
    'existing directory for the backups of dedicated databases; default: backups in the data directory, which is made',
  ),
  backupS3: setting(
    S3Url,
    '<url>',
    'bucket for the backups instead, such as s3://bucket/prefix; credentials, region and endpoint as the AWS SDK reads them from the environment',
  ),
  webhookPrivateAddresses: privateAddressesSetting('on'),
  ...SERVER_SETTINGS,
  ...API_SETTINGS,
  ...LOG_SETTINGS,
  readyFile: setting(Path, '<path>', 'JSON file that is written when Mooring is ready; default: none'),
} as const

export type Settings = SettingsOf<typeof SETTINGS>

export const parseSettings = createSettingsParser({
  program: 'npm start --',
  description: 'Starts Mooring in one process. Each setting is a flag, or an environment variable when the flag is not given.',
  table: SETTINGS,
  check: (settings) => [
    ...samePorts(settings),
    ...smallBursts(settings),
    ...acmeConflicts(settings),
    ...twoRepositories(settings),
    ...tlsFileConflicts(settings),
  ],
})

function twoRepositories({ backupDir, backupS3 }: Settings): readonly string[] {
  const isTwice = backupDir !== undefined && backupS3 !== undefined
  return isTwice ? ['mooring: --backup-dir and --backup-s3 exclude each other: give the one that the backups go to.'] : []
}
