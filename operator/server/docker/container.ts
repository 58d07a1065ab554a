import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { EngineSize } from '../../engines/size.ts'
import { POD_SETTINGS } from '../kubernetes/desired-server.ts'
import { at, type EnginePod } from '../kubernetes/engine-pod.ts'
import { type ServerPaths, serverPaths } from '../process/files/paths.ts'
import type { EngineUser } from '../process/spawn/engine-user.ts'

export const labels = {
  /** Hash of the servers' directory, the same for all containers of an installation. */
  installation: 'dev.mooring.installation',
  /** Data directory of the server, for an administrator who reads the list of containers. */
  data: 'dev.mooring.data',
  /** Object name of the server. */
  server: 'dev.mooring.server',
  /** Hash of all that a container is created from. */
  config: 'dev.mooring.config',
} as const

/** Address that ports of containers are published on. */
export const LOOPBACK = '127.0.0.1'

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)

/** Value of the label `installation` for the directory of all servers. */
export const installationOf = (directory: string): string => shortHash(directory)

/** Name of the network of an installation's containers. */
export const networkName = (directory: string): string => `mooring-${installationOf(directory)}`

/** Files of a server in containers: those of any server of the machine, and the sources of its mounts. */
export interface ContainerPaths extends ServerPaths {
  readonly certificate: string
  readonly admin: string
  readonly output: string
  /** Copy of /etc/passwd for the container: `initdb` refuses a user without a name. */
  readonly passwd: string
}

export function containerPaths(directory: string, uid: string): ContainerPaths {
  const paths = serverPaths(directory, uid)
  const own = (name: string): string => join(paths.root, name)
  return {
    ...paths,
    certificate: own('certificate'),
    admin: own('admin'),
    output: own('output'),
    passwd: own('passwd'),
  }
}

/** Containers of one server. Copies of a data directory have other names, because their paths differ. */
export function containerNames(paths: Pick<ServerPaths, 'root'>) {
  const name = `mooring-${shortHash(paths.root)}`
  return { serve: name, initialise: `${name}-initialise` }
}

/** Desired container of a server. */
export interface DesiredContainer {
  readonly paths: ContainerPaths
  readonly engine: EnginePod
  /** Image by its content hash. */
  readonly image: string
  readonly user: EngineUser
  /** Memory in MiB above which the kernel ends the server. */
  readonly memoryMiB: number
  /** Port on loopback. */
  readonly port: number
  /** Port for the administrator alone: that on loopback, and that in the container. Absent: there is none. */
  readonly adminPort?: { readonly published: number; readonly inside: number } | undefined
  /** Path at which the server sees the output of `initialise` (engine-pod.ts). */
  readonly outputAt: string
  /** Signal that ends sessions and shuts down cleanly. */
  readonly stopSignal: NodeJS.Signals
  readonly network: string
  readonly labels: Readonly<Record<string, string>>
}

/** Memory in MiB of a server that is not dedicated, the same as in a cluster. */
const SHARED_MEMORY_MIB = POD_SETTINGS.sharedSize.memoryLimitMiB

/** Memory in MiB above which the kernel ends a server. */
export const memoryOf = (size: EngineSize | undefined): number => size?.memoryMiB ?? SHARED_MEMORY_MIB

/** Arguments of `docker run` that confine a container as the pods of a cluster are. */
export const confined = ({ uid, gid }: EngineUser, memoryMiB = SHARED_MEMORY_MIB): readonly string[] => [
  ...['--user', `${uid}:${gid}`, '--userns', 'host'],
  ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
  // Labels of SELinux would deny the mounted directories, which other programs of this user read, too.
  ...['--security-opt', 'label=disable'],
  ...['--tmpfs', '/tmp:rw,noexec,nosuid,size=1g', '--shm-size', `${Math.ceil(memoryMiB / 4)}m`],
  // Equal limits leave no swap, which would slow down the whole machine instead of ending one server.
  ...['--memory', `${memoryMiB}m`, '--memory-swap', `${memoryMiB}m`],
  // MySQL 5.7 allocates memory for each possible descriptor, and some distributions allow a billion.
  ...['--pids-limit', '4096', '--ulimit', 'nofile=20000:20000', '--ulimit', 'core=0'],
]

/** Arguments of the docker client that create the data directory and wait for the end of that. */
export function initialiseArgs(desired: DesiredContainer): readonly string[] {
  const { paths, engine, image, user, memoryMiB } = desired
  return [
    ...['run', '--rm', '--name', containerNames(paths).initialise, ...confined(user, memoryMiB), '--network', 'none'],
    ...labelled(desired.labels),
    ...ownMounts(paths, engine),
    ...mount(paths.admin, at.admin, 'ro'),
    ...mount(paths.output, at.output, 'rw'),
    ...command(image, engine.initialise),
  ]
}

/** Arguments of the docker client that start the server. */
export function serveArgs(desired: DesiredContainer): readonly string[] {
  const { paths, engine, image, user, memoryMiB, port, adminPort, outputAt, stopSignal, network } = desired
  return [
    ...['run', '--detach', '--name', containerNames(paths).serve, ...confined(user, memoryMiB)],
    ...['--network', network, '--publish', `${LOOPBACK}:${port}:${engine.port}`],
    ...(adminPort ? ['--publish', `${LOOPBACK}:${adminPort.published}:${adminPort.inside}`] : []),
    ...['--stop-signal', stopSignal, '--restart', 'no'],
    // The default driver has no bound, and a tenant may make a server log much.
    ...['--log-driver', 'local', '--log-opt', 'max-size=10m', '--log-opt', 'max-file=3'],
    ...labelled(desired.labels),
    ...ownMounts(paths, engine),
    ...mount(paths.certificate, at.certificate, 'ro'),
    ...mount(paths.output, outputAt, 'ro'),
    ...command(image, engine.serve),
  ]
}

/** Arguments that create the network: containers on it reach neither each other nor other networks. */
export const networkArgs = (network: string, installation: string): readonly string[] => [
  ...['network', 'create', '--label', `${labels.installation}=${installation}`],
  ...['--opt', 'com.docker.network.bridge.enable_icc=false'],
  ...['--opt', 'com.docker.network.bridge.enable_ip_masquerade=false'],
  network,
]

const labelled = (values: DesiredContainer['labels']): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--label', `${name}=${value}`])

const ownMounts = (paths: ContainerPaths, engine: EnginePod): readonly string[] => [
  ...mount(paths.data, engine.dataMount, 'rw'),
  ...mount(paths.config, at.config, 'ro'),
  ...mount(paths.passwd, '/etc/passwd', 'ro'),
]

/** `--mount` fails when the source is missing at the daemon, where `--volume` would create an empty directory. */
function mount(source: string, target: string, access: 'ro' | 'rw'): readonly string[] {
  const field = `source=${source}`
  // Fields are those of a line of CSV (RFC 4180).
  const quoted = /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
  return ['--mount', `type=bind,${quoted},target=${target}${access === 'ro' ? ',readonly' : ''}`]
}

function command(image: string, [program = '', ...args]: readonly string[]): readonly string[] {
  return ['--entrypoint', program, image, ...args]
}

/** Text of /etc/passwd in a container. */
export const passwdFor = ({ uid, gid }: EngineUser): string =>
  `root:x:0:0:root:/root:/usr/sbin/nologin\nmooring:x:${uid}:${gid}:database server:/tmp:/usr/sbin/nologin\n`

/** Hash of all that a container is created from. It excludes what a server reloads: its certificate, and access rules. */
export function configHash(desired: DesiredContainer, files: Readonly<Record<string, string>>): string {
  return shortHash(JSON.stringify([serveArgs({ ...desired, labels: {} }), files]))
}
