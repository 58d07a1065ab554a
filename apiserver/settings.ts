import { LOG_SETTINGS } from '../process/log.ts'
import { QUOTA_SETTINGS } from '../process/quotas.ts'
import { Address, Issuers, ListenPort, Path, Ranges, whole } from '../process/setting-rules.ts'
import { DEFAULT_LIMITS } from './http/limits.ts'
import { createSettingsParser, flagOf, samePorts, setting, type SettingsOf, withDefault } from '../process/settings.ts'

const count = (range: readonly [number, number], initial: number, about: string) =>
  withDefault(whole(...range), '<n>', [String(initial), about])

/** What the API is told in either home: quotas, rates and whose tokens it takes (surface, section 2). */
export const API_SETTINGS = {
  ...QUOTA_SETTINGS,
  quotaApiTokens: count([0, 1_000_000], DEFAULT_LIMITS.quotaApiTokens, 'API tokens in one namespace'),
  writeRate: count([1, 1_000_000], DEFAULT_LIMITS.writeRate, 'writes a second that one caller may make for long'),
  writeBurst: count([1, 1_000_000], DEFAULT_LIMITS.writeBurst, 'writes that one caller may make at once'),
  readRate: count([1, 1_000_000], DEFAULT_LIMITS.readRate, 'reads a second that one caller may make for long'),
  readBurst: count([1, 1_000_000], DEFAULT_LIMITS.readBurst, 'reads that one caller may make at once'),
  failedAuthPerMinute: count(
    [1, 1_000_000],
    DEFAULT_LIMITS.failedAuthPerMinute,
    'failed authentications a minute from one address',
  ),
  issuer: {
    ...withDefault(Issuers, '<name=url>', ['', 'one more issuer of tokens, keys by OpenID discovery; may be repeated']),
    repeated: true,
  },
} as const

/** The limiter grants the rate first and the rest of the burst on top. */
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
  auditPort: port('8445', 'HTTPS port on which the cluster tells of writes that come by other ways than REST'),
  metricsPort: port('9464', 'plain HTTP port of metrics and probes'),
  files: withDefault(Path, '<path>', ['/var/run/mooring/apiserver', 'where the Secret mooring-apiserver is mounted']),
  tlsFiles: setting(Path, '<path>', 'where tls.crt and tls.key of your own are mounted; default: those of --files'),
  dataDir: withDefault(Path, '<path>', ['/var/lib/mooring', 'where audit entries wait while the journal is away']),
  journalFiles: setting(Path, '<path>', 'where the Secret journal-reader is mounted; without it there are no tunnels'),
  trustedProxies: withDefault(Ranges, '<addresses>', ['', 'addresses or ranges of proxies whose X-Forwarded-For is believed']),
  ...API_SETTINGS,
  ...LOG_SETTINGS,
} as const

/** Settings of the API server in a cluster. */
export type ApiServerSettings = SettingsOf<typeof SETTINGS>

export const parseSettings = createSettingsParser({
  program: 'node apiserver/main.ts',
  description: 'Serves the API from the resources of a Kubernetes cluster: that of the pod, or of KUBECONFIG.',
  table: SETTINGS,
  check: (settings) => [...samePorts(settings), ...smallBursts(settings)],
})
