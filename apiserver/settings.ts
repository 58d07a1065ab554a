import { LOG_SETTINGS } from '../process/run.ts'
import {
  QUOTA_SETTINGS,
  Address,
  Issuers,
  ListenPort,
  Path,
  privateAddressesSetting,
  ALLOWED_NETWORKS,
  Ranges,
  Switch,
  whole,
} from '../process/setting-rules.ts'
import { DEFAULT_LIMITS } from './http/rate-limit.ts'
import { createSettingsParser, flagOf, samePorts, setting, type SettingsOf, withDefault } from '../process/settings.ts'

const count = (range: readonly [number, number], initial: number, about: string) =>
  withDefault(whole(...range), '<n>', [String(initial), about])

/** Settings of the API in both deployment modes: quotas, rates and trusted issuers. */
export const API_SETTINGS = {
  ...QUOTA_SETTINGS,
  quotaApiTokens: count([0, 1_000_000], DEFAULT_LIMITS.quotaApiTokens, 'API tokens in one namespace'),
  writeRate: count([1, 1_000_000], DEFAULT_LIMITS.writeRate, 'sustained writes per second of one caller'),
  writeBurst: count([1, 1_000_000], DEFAULT_LIMITS.writeBurst, 'burst of writes of one caller'),
  readRate: count([1, 1_000_000], DEFAULT_LIMITS.readRate, 'sustained reads per second of one caller'),
  readBurst: count([1, 1_000_000], DEFAULT_LIMITS.readBurst, 'burst of reads of one caller'),
  failedAuthPerMinute: count(
    [1, 1_000_000],
    DEFAULT_LIMITS.failedAuthPerMinute,
    'failed authentications per minute from one address',
  ),
  issuer: {
    ...withDefault(Issuers, '<name=url>', ['', 'additional issuer of tokens, keys by OpenID discovery; may be repeated']),
    repeated: true,
  },
} as const

/** Returns an error for each burst below its rate: the limiter grants the rate first and the rest of the burst in addition. */
export function smallBursts(
  settings: Pick<SettingsOf<typeof API_SETTINGS>, 'writeRate' | 'writeBurst' | 'readRate' | 'readBurst'>,
) {
  return (['write', 'read'] as const)
    .filter((kind) => settings[`${kind}Burst`] < settings[`${kind}Rate`])
    .map(
      (kind) =>
        `mooring: ${flagOf(`${kind}Burst`)} must be at least ${flagOf(`${kind}Rate`)}, which is ${settings[`${kind}Rate`]}.`,
    )
}

const port = (initial: string, about: string) => withDefault(ListenPort, '<port>', [initial, about])

const SETTINGS = {
  listen: withDefault(Address, '<address>', ['0.0.0.0', 'address of all listeners']),
  sharedPort: port('8443', 'HTTPS port of the shared API'),
  dedicatedPort: port('8444', 'HTTPS port of the dedicated API'),
  auditPort: port('8445', 'HTTPS port of the webhook that audits writes made without the REST API'),
  metricsPort: port('9464', 'plain HTTP port of metrics and probes'),
  files: withDefault(Path, '<path>', ['/var/run/mooring/apiserver', 'mount path of the Secret mooring-apiserver']),
  tlsFiles: setting(Path, '<path>', 'mount path of your own tls.crt and tls.key; default: those of --files'),
  dataDir: withDefault(Path, '<path>', [
    '/var/lib/mooring',
    'directory of audit entries that wait while the journal is unavailable',
  ]),
  journalFiles: setting(Path, '<path>', 'mount path of the Secret journal-reader; without it tunnels are off'),
  trustedProxies: withDefault(Ranges, '<addresses>', ['', 'addresses or ranges of proxies whose X-Forwarded-For is trusted']),
  webhookPrivateAddresses: privateAddressesSetting('off'),
  webhookAllowedNetworks: ALLOWED_NETWORKS,
  backups: withDefault(Switch, '[on|off]', ['off', 'whether the installation has a repository of backups']),
  ...API_SETTINGS,
  ...LOG_SETTINGS,
} as const

/** Settings of the API server in a cluster. */
export type ApiServerSettings = SettingsOf<typeof SETTINGS>

export const parseSettings = createSettingsParser({
  program: 'node apiserver/main.ts',
  description: 'Serves the API from the resources of a Kubernetes cluster: the cluster of the pod, or of KUBECONFIG.',
  table: SETTINGS,
  check: (settings) => [...samePorts(settings), ...smallBursts(settings)],
})
