import type { DatabaseServer } from '../../../crds/database-server.ts'
import { type Region, EXPOSURES } from '../../../crds/region.ts'
import type { BackupPodSettings } from './backup/settings.ts'
import { type DesiredExporter, type ExporterPodSettings, exporterOf } from './exporter/settings.ts'
import type { EnginePod } from './engine-pod.ts'
import { type Motor, partsOf } from '../../../crds/motor.ts'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../../crds/names.ts'
import { MooringError } from '../../../shared/errors.ts'
import type { Plan } from '../../../crds/plan.ts'
import { accessOf, type ServerAccess } from '../access.ts'
import type { ServerState } from '../runtime.ts'
import { ENGINE_PODS } from './engine-pods.ts'
import type { Service, StatefulSet } from '../../kubernetes/kinds.ts'

export type Exposure = NonNullable<Region['spec']['databases']>['exposure']

/** Desired state of a server that its builders depend on. */
export interface DesiredServer {
  readonly server: DatabaseServer
  readonly engine: EnginePod
  readonly image: string
  readonly size: ServerSize
  /** Path at which the server sees the output of `initialise` (engine-pod.ts). */
  readonly outputAt: string
  /** Port for the administrator alone, which only the operator may reach. Absent: there is none. */
  readonly adminPort?: number | undefined
  /** Whether the server requires TLS of every client. */
  readonly tls: boolean
  readonly exposure: Exposure
  /** Host for callers instead of the Service's own. */
  readonly host: string | undefined
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly settings: PodSettings
  /** Who may connect to a dedicated server. Absent: the server is not restricted. */
  readonly access: ServerAccess | undefined
  /** How the server is backed up or restored. Absent: neither. */
  readonly backups?: BackupPodSettings | undefined
  /** Exporter beside the server. Absent: none. */
  readonly exporter?: DesiredExporter | undefined
  /** Name of the admin, and of the Secret that holds its password under `password`. */
  readonly admin: { readonly user: string; readonly secret: string }
}

/** Resources of one server. */
export interface ServerSize {
  /** Requested cores. */
  readonly cpu: number
  /** Maximum number of cores. */
  readonly cpuLimit: number
  /** Requested memory in MiB. */
  readonly memoryMiB: number
  /** Memory in MiB above which the server is killed. */
  readonly memoryLimitMiB: number
  readonly storageGiB: number
}

/** How database servers run as pods, for the whole installation. A Region adds exposure, images and nodes. */
export interface PodSettings {
  /** Namespace of the servers. */
  readonly namespace: string
  /** Namespace and labels of the operator's pods, which may connect to every server. */
  readonly operator: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> }
  /** Image by motor; a motor without an image is not served unless a Region names one. */
  readonly images: Readonly<Partial<Record<Motor, string>>>
  /** Names of the Secrets with which images are pulled. */
  readonly pullSecrets: readonly string[]
  /** Uid and gid of the engine's user in the images (docs/images.md). */
  readonly user: { readonly uid: number; readonly gid: number }
  /** Size of a server without a plan. */
  readonly sharedSize: ServerSize
  /** StorageClass. Default: that of the cluster. */
  readonly storageClass?: string | undefined
  /** Address ranges of the cluster's pods; derived when empty (network-policy.ts). */
  readonly podNetworks: readonly string[]
  /** DNS domain of the cluster. */
  readonly clusterDomain: string
  /** How the operator dials a server: by its Service's name or, without the cluster's DNS, by the Service's address. */
  readonly dial: 'name' | 'address'
  /** Repository of backups; absent in an installation without one. */
  readonly backups?: BackupPodSettings | undefined
  /** Exporters of metrics; absent in an installation without them. */
  readonly exporters?: ExporterPodSettings | undefined
  /** Interval of reconciling every server even without a change. */
  readonly resyncMs: number
}

export const POD_SETTINGS: PodSettings = {
  namespace: SHARED_NAMESPACE,
  operator: {
    namespace: SYSTEM_NAMESPACE,
    labels: { 'app.kubernetes.io/name': 'mooring', 'app.kubernetes.io/component': 'operator' },
  },
  images: {
    'postgresql-15.4.0': 'postgres:15.4',
    'postgresql-14.4.0': 'postgres:14.4',
    'mysql-5.7.38': 'mysql:5.7.38',
    'mysql-8.0.29': 'mysql:8.0.29',
    'mariadb-10.7.4': 'mariadb:10.7.4',
    'mongodb-5.0.9': 'mongo:5.0.9',
    'mongodb-7.0.2': 'mongo:7.0.2',
  },
  pullSecrets: [],
  user: { uid: 999, gid: 999 },
  sharedSize: { cpu: 0.1, cpuLimit: 2, memoryMiB: 256, memoryLimitMiB: 2048, storageGiB: 10 },
  podNetworks: [],
  clusterDomain: 'cluster.local',
  dial: 'name',
  resyncMs: 300_000,
}

export interface PlacementFacts {
  readonly settings: PodSettings
  /** Region by id; undefined when it does not exist. */
  readonly region: (id: string) => Region | undefined
  /** Plan by name; undefined when it does not exist. */
  readonly plan: (name: string) => Plan | undefined
}

/** Existing objects of the server. */
export interface Existing {
  readonly statefulSet: StatefulSet | undefined
  readonly service: Service | undefined
}

/**
 * Desired placement and size of a server. Pure. When its Region was deleted, a server stays as it is.
 * @returns a failure when no image or engine is known for the motor
 * @throws MooringError `unknown_plan`: a server of unknown size is not changed
 */
export function placementOf(
  server: DatabaseServer,
  { settings, ...facts }: PlacementFacts,
  existing: Existing,
): Omit<DesiredServer, 'admin'> | Extract<ServerState, { readonly phase: 'failed' }> {
  const { motor } = server.spec
  const engine = ENGINE_PODS[partsOf(motor).family]
  const region = facts.region(server.spec.region)
  const image = imageOf(server, region, existing.statefulSet) ?? settings.images[motor]
  if (image === undefined) {
    return { phase: 'failed', reason: 'MotorUnavailable', message: `no image of ${motor} is configured` }
  }
  const backups = backupsOf(server, engine, settings)
  if (backups === 'impossible') {
    return { phase: 'failed', reason: 'MotorUnavailable', message: `there are no backups of ${motor} in this installation` }
  }
  const size = sizeOf(server, settings, facts.plan)
  const motorInRegion = region?.spec.motors.find(({ id }) => id === motor)
  const adminPort = adminPortOf(engine, motor)
  const outputAt = engine.outputAt(motor, motorInRegion?.extensionDirectory)
  const tls = (motorInRegion ?? server.status)?.tls !== 'none'
  return {
    server,
    engine,
    adminPort,
    image,
    size,
    outputAt,
    tls,
    settings,
    access: accessOf(server),
    ...(backups && { backups }),
    exporter: exporterOf(server, settings.exporters),
    ...withoutOutside(server, region ? exposedIn(region, server) : exposedAs(existing)),
  }
}

const adminPortOf = (engine: EnginePod, motor: Motor): number | undefined => engine.adminPort?.(partsOf(motor).version)

function backupsOf(
  { spec }: DatabaseServer,
  engine: EnginePod,
  { backups }: PodSettings,
): BackupPodSettings | 'impossible' | undefined {
  if (!spec.archive && !spec.restore) return undefined
  return backups && engine.dataDirectory !== undefined ? backups : 'impossible'
}

/** A private server has no address outside the cluster, whatever its Region says. */
function withoutOutside(server: DatabaseServer, exposed: Exposed): Exposed {
  return accessOf(server)?.isPrivate ? { ...exposed, exposure: 'ClusterIP', host: undefined } : exposed
}

type Exposed = Pick<DesiredServer, 'exposure' | 'host' | 'nodeSelector'>

function exposedIn({ spec: { databases, nodeSelector = {} } }: Region, { spec }: DatabaseServer): Exposed {
  // A server of Mooring's own has no callers from outside.
  if (spec.tenancy === 'internal') return { exposure: 'ClusterIP', host: undefined, nodeSelector }
  return { exposure: databases?.exposure ?? 'ClusterIP', host: databases?.host, nodeSelector }
}

function exposedAs({ service }: Existing): Exposed {
  const exposure = EXPOSURES.find((exposure) => exposure === service?.spec.type) ?? 'ClusterIP'
  return { exposure, host: undefined, nodeSelector: {} }
}

function imageOf({ spec }: DatabaseServer, region: Region | undefined, live: StatefulSet | undefined): string | undefined {
  if (region) return region.spec.motors.find(({ id }) => id === spec.motor)?.image
  return live?.spec.template.spec.containers[0]?.image
}

function sizeOf({ spec }: DatabaseServer, settings: PodSettings, plan: PlacementFacts['plan']): ServerSize {
  if (spec.size === undefined && spec.plan === undefined) return settings.sharedSize
  const found = spec.size ?? plan(spec.plan ?? '')?.spec
  if (!found) throw new MooringError('unknown_plan', `plan ${spec.plan ?? ''} does not exist`)
  const { cpu, memoryMiB, storageGiB } = found
  return { cpu, cpuLimit: cpu, memoryMiB, memoryLimitMiB: memoryMiB, storageGiB }
}
