import { API_SETTINGS, smallBursts } from '../apiserver/settings.ts'
import { SERVER_SETTINGS } from '../operator/settings.ts'
import { LOG_SETTINGS } from '../process/run.ts'
import { Address, Domain, ListenPort, OptionalPort, Path, PublicHost, Switch } from '../process/setting-rules.ts'
import { createSettingsParser, samePorts, setting, type SettingsOf, withDefault } from '../process/settings.ts'

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
  compatibleMotors: withDefault(Switch, '[on|off]', [
    'off',
    'serve a missing version of a motor with the nearest one of its series',
  ]),
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
  check: (settings) => [...samePorts(settings), ...smallBursts(settings)],
})
