import { hostname } from 'node:os'
import { partsOf } from '../crds/motor.ts'
import { SYSTEM_NAMESPACE } from '../crds/names.ts'
import { LOG_SETTINGS } from '../process/run.ts'
import {
  QUOTA_SETTINGS,
  type Quotas,
  Address,
  Host,
  Hosts,
  HttpsUrl,
  ListenPort,
  oneOf,
  privateAddressesSetting,
  ALLOWED_NETWORKS,
  Ranges,
  Text,
  whole,
} from '../process/setting-rules.ts'
import { createSettingsParser, flagOf, setting, type SettingsOf, withDefault } from '../process/settings.ts'
import { AUDIT_SERVICE } from './installation/audit-webhook.ts'
import type { OperatorSettings } from './operator.ts'
import { EdgePods } from './endpoint/kubernetes/settings.ts'
import { ExporterPods } from './server/kubernetes/exporter/settings.ts'
import { BackupPods } from './server/kubernetes/backup/settings.ts'
import { POD_SETTINGS, type PodSettings } from './server/kubernetes/desired-server.ts'

const MIB = 1_048_576
const EVERY = { sessionsMs: 5_000, sweepMs: 60_000 }

const count = (range: readonly [number, number], initial: string, about: string) =>
  withDefault(whole(...range), '<n>', [initial, about])

/** Settings of the operator in both deployment modes. */
export const SERVER_SETTINGS = {
  serverCapacity: count([1, 20_000], '50', 'shared instances on one database server'),
  // docs/decisions/2026-11-28-mongodb-servers-of-ten.md
  mongodbServerCapacity: count([1, 20_000], '10', 'shared instances on one MongoDB server'),
  warmPool: count([0, 1_000], '5', 'spare databases kept ready on each warm server'),
  instanceSizeLimitMib: count([16, 67_108_864], '1024', 'MiB that a shared instance may grow to before its logins are blocked'),
  statementLimitSeconds: count([1, 86_400], '300', 'seconds after which a statement on a shared server is cancelled'),
  idleTransactionLimitSeconds: count(
    [1, 86_400],
    '600',
    'seconds after which a session that leaves its transaction open and idle is ended',
  ),
} as const

export function operatorSettings(settings: SettingsOf<typeof SERVER_SETTINGS> & Quotas): OperatorSettings {
  return {
    warmPool: settings.warmPool,
    capacityOf: (motor) => (partsOf(motor).family === 'mongodb' ? settings.mongodbServerCapacity : settings.serverCapacity),
    quotas: { instances: settings.quotaInstances, databases: settings.quotaDatabases, tunnels: settings.quotaTunnels },
    limits: {
      statementMs: settings.statementLimitSeconds * 1_000,
      idleTransactionMs: settings.idleTransactionLimitSeconds * 1_000,
      sizeBytes: settings.instanceSizeLimitMib * MIB,
    },
    every: EVERY,
  }
}

const SETTINGS = {
  listen: withDefault(Address, '<address>', ['0.0.0.0', 'address that metrics and probes listen on']),
  metricsPort: withDefault(ListenPort, '<port>', ['9464', 'plain HTTP port of metrics and probes']),
  identity: withDefault(Text, '<name>', [hostname(), 'name of this process among the operators, one of which is leader']),
  issuerUrl: withDefault(HttpsUrl, '<url>', [
    `https://mooring-apiserver.${SYSTEM_NAMESPACE}.svc`,
    'name of the issuer of Mooring’s own tokens; an existing installation keeps its own',
  ]),
  apiNames: withDefault(Hosts, '<hosts>', ['', 'names and addresses that the API is reached by, beside those of its Service']),
  clusterDomain: withDefault(Host, '<domain>', ['cluster.local', 'DNS domain of the cluster']),
  dial: withDefault(oneOf(['name', 'address']), '<way>', ['name', 'name or address: how database servers are dialled']),
  podNetworks: withDefault(Ranges, '<ranges>', ['', 'address ranges of the cluster’s pods; derived when empty']),
  storageClass: setting(Text, '<name>', 'class of the volumes of database servers; default: that of the cluster'),
  pullSecrets: withDefault(Hosts, '<names>', ['', 'Secrets in mooring-shared with which images of database servers are pulled']),
  serverCpu: count([10, 256_000], '100', 'thousandths of a core that are set aside for a shared database server'),
  serverCpuLimit: count([10, 256_000], '2000', 'thousandths of a core that it may use at the most'),
  serverMemory: count([64, 4_194_304], '256', 'MiB that are set aside for it'),
  serverMemoryLimit: count([64, 4_194_304], '2048', 'MiB past which it is killed'),
  serverStorage: count([1, 65_536], '10', 'GiB of its volume'),
  serverUser: count([1, 2_147_483_647], '999', 'uid and gid of the engine’s user in the images of database servers'),
  edges: setting(EdgePods, '<json>', 'settings of edges as the chart makes them; without it there are no tunnels'),
  backups: setting(
    BackupPods,
    '<json>',
    'repository of backups as the chart makes it; without it there is no point-in-time recovery',
  ),
  monitoring: setting(ExporterPods, '<json>', 'exporters of metrics as the chart makes them; without it there are none'),
  journalSecret: setting(
    Text,
    '<name>',
    'Secret in mooring-system with the login to an outside journal; default: a server of Mooring’s own',
  ),
  webhookPrivateAddresses: privateAddressesSetting('off'),
  webhookAllowedNetworks: ALLOWED_NETWORKS,
  ...SERVER_SETTINGS,
  ...QUOTA_SETTINGS,
  ...LOG_SETTINGS,
} as const

/** Settings of the operator in a cluster. */
export type ClusterOperatorSettings = SettingsOf<typeof SETTINGS>

export const parseSettings = createSettingsParser({
  program: 'node operator/main.ts',
  description: 'Runs the operator for a Kubernetes cluster: that of the pod, or of KUBECONFIG.',
  table: SETTINGS,
  check: smallLimits,
})

function smallLimits(settings: ClusterOperatorSettings): readonly string[] {
  return (['serverCpu', 'serverMemory'] as const)
    .filter((name) => settings[`${name}Limit`] < settings[name])
    .map((name) => `mooring: ${flagOf(`${name}Limit`)} must be at least ${flagOf(name)}, which is ${settings[name]}.`)
}

const MILLI = 1_000

/** Settings of database servers as pods. */
export function podSettings(settings: ClusterOperatorSettings): PodSettings {
  return {
    ...POD_SETTINGS,
    pullSecrets: settings.pullSecrets,
    storageClass: settings.storageClass,
    backups: settings.backups,
    exporters: settings.monitoring,
    podNetworks: settings.podNetworks,
    clusterDomain: settings.clusterDomain,
    dial: settings.dial,
    user: { uid: settings.serverUser, gid: settings.serverUser },
    sharedSize: {
      cpu: settings.serverCpu / MILLI,
      cpuLimit: settings.serverCpuLimit / MILLI,
      memoryMiB: settings.serverMemory,
      memoryLimitMiB: settings.serverMemoryLimit,
      storageGiB: settings.serverStorage,
    },
  }
}

/** Names in the API's certificate: those of its Service, and those for callers outside. */
export function apiNames({ apiNames: outside, clusterDomain }: Pick<ClusterOperatorSettings, 'apiNames' | 'clusterDomain'>) {
  const service = 'mooring-apiserver'
  const inNamespace = `${service}.${SYSTEM_NAMESPACE}`
  const inside = [
    service,
    inNamespace,
    `${inNamespace}.svc`,
    `${inNamespace}.svc.${clusterDomain}`,
    `${AUDIT_SERVICE}.${SYSTEM_NAMESPACE}.svc`,
  ]
  return [...new Set([...inside, 'localhost', '127.0.0.1', '::1', ...outside])]
}
