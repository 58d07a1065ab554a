import { hostname } from 'node:os'
import { EDGE_PATHS, EDGE_PORTS } from '../shared/edge-objects.ts'
import { type CommandLine, createSettingsParser, samePorts, setting, type SettingsOf, withDefault } from '../process/settings.ts'
import { LOG_SETTINGS } from '../process/run.ts'
import { Address, ListenPort, Path, Text, whole } from '../process/setting-rules.ts'

const SETTINGS = {
  endpoint: setting(Text, '<name>', 'name of the TunnelEndpoint that the edge serves'),
  podName: withDefault(Text, '<name>', [hostname(), 'name of this edge among those of its endpoint; POD_NAME means the same']),
  listen: withDefault(Address, '<address>', ['0.0.0.0', 'address to listen on']),
  sshPort: withDefault(ListenPort, '<port>', [String(EDGE_PORTS.ssh), 'port for SSH clients']),
  httpPort: withDefault(ListenPort, '<port>', [String(EDGE_PORTS.http), 'port for visitors, plain HTTP']),
  httpsPort: withDefault(ListenPort, '<port>', [String(EDGE_PORTS.https), 'port for visitors, HTTPS']),
  meshPort: withDefault(ListenPort, '<port>', [String(EDGE_PORTS.mesh), 'port for the other edges of the endpoint']),
  metricsPort: withDefault(ListenPort, '<port>', [String(EDGE_PORTS.metrics), 'plain HTTP port of metrics and probes']),
  hostKeys: withDefault(Path, '<path>', [EDGE_PATHS.hostKeys, 'where the Secret with the host keys is mounted']),
  meshFiles: withDefault(Path, '<path>', [
    EDGE_PATHS.mesh,
    'where the Secret with the certificate for the other edges is mounted',
  ]),
  journalFiles: withDefault(Path, '<path>', [EDGE_PATHS.journal, 'where the Secret with the journal’s address is mounted']),
  dataDir: withDefault(Path, '<path>', [EDGE_PATHS.data, 'directory for data that outlives a restart of the process']),
  drainSeconds: withDefault(whole(0, 3_600), '<n>', [
    '45',
    'seconds at a stop in which clients are asked to reconnect and requests may end',
  ]),
  ...LOG_SETTINGS,
} as const

/** Settings of an edge in a cluster. */
export type EdgeSettings = SettingsOf<typeof SETTINGS> & { readonly endpoint: string }

type Environment = Readonly<Record<string, string | undefined>>

const parse = createSettingsParser({
  program: 'node edge/main.ts',
  description: 'Runs an edge of a TunnelEndpoint in the Kubernetes cluster of its pod, or of KUBECONFIG.',
  table: SETTINGS,
  check: (settings) => [
    ...(settings.endpoint === undefined ? ['mooring: --endpoint (MOORING_ENDPOINT in the environment) must be given.'] : []),
    ...samePorts(settings),
  ],
})

/** Parses settings as {@link createSettingsParser} does; `POD_NAME` is the variable that pods set. */
export function parseSettings(argv: readonly string[], env: Environment): CommandLine<EdgeSettings> {
  const parsed = parse(argv, { MOORING_POD_NAME: env.POD_NAME, ...env })
  if ('exit' in parsed) return parsed
  const { endpoint = '' } = parsed.ok
  return { ok: { ...parsed.ok, endpoint } }
}
