import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { z } from 'zod'
import { partsOf } from '../../../crds/motor.ts'
import { MooringError } from '../../../shared/errors.ts'
import { REFUSED } from '../../kubernetes/pod-state.ts'
import type { EngineAccess } from '../access.ts'
import type { EngineSize } from '../../engines/size.ts'
import type { EnginePod } from '../kubernetes/engine-pod.ts'
import { choosePorts, type Ports } from '../process/address.ts'
import { writeDurably } from '../process/files/durable-files.ts'
import { madeBy, makeDirectories, type Record as ServerRecord, readRecord, writeRecord } from '../process/files/paths.ts'
import type { KeyAlgorithm } from '../../certificates/local-ca.ts'
import type { EngineCertificate } from '../process/programs/program.ts'
import type { EngineUser } from '../process/spawn/engine-user.ts'
import { withLock } from '../process/spawn/serving.ts'
import type { Supervised } from '../process/supervisor.ts'
import type { AdminCredentials } from '../runtime.ts'
import { assertSameSeries, OTHER_SERIES } from '../series.ts'
import {
  configHash,
  containerNames,
  type ContainerPaths,
  type DesiredContainer,
  initialiseArgs,
  installationOf,
  labels,
  LOOPBACK,
  memoryOf,
  networkArgs,
  networkName,
  passwdFor,
  serveArgs,
} from './container.ts'
import type { DockerClient } from './docker-client.ts'
import type { DockerEngine } from './docker-engine.ts'

export interface BringUpDeps {
  readonly docker: DockerClient
  /** Directory of all servers. */
  readonly directory: string
  readonly paths: ContainerPaths
  /** Object name of the server. */
  readonly server: string
  readonly serves: DockerEngine
  readonly engine: EnginePod
  readonly stopSignal: NodeJS.Signals
  readonly reload: NodeJS.Signals
  readonly user: EngineUser
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  /** Returns the present access rules of a dedicated server; undefined when the server is not restricted. */
  readonly access: () => EngineAccess | undefined
  /** Size of a dedicated server. A running container of another size is replaced. */
  readonly size?: EngineSize | undefined
  readonly certificate: (key: KeyAlgorithm) => EngineCertificate | Promise<EngineCertificate>
  /** Ports of the other servers. */
  readonly reservedPorts: () => Promise<ReadonlySet<number>>
  readonly logger: Logger
}

/** Seconds of a clean shutdown before the server is killed. */
export const STOP_S = 4

/** Prefix of the id of the binaries in the record of a server that runs in a container. */
export const RECORD_PREFIX = 'docker:'

/**
 * Adopts the container that runs on a data directory, or starts one. A crash after any step is harmless: the record says from the beginning
 * that the data belong to containers, the script of the engine completes the data, and a container is found by its name.
 * @throws MooringError `docker_failed`, `docker_missing`, `no_free_port`, `initialise_failed`, `other_series`; the signal's reason when it aborts
 */
export function bringUp(deps: BringUpDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<Supervised> {
  return withLock(deps.paths.root, signal, async () => {
    await mkdir(deps.paths.root, { recursive: true, mode: 0o700 })
    const former = await readRecord(deps.paths)
    if (former) {
      const wanted = await desiredOn(former, deps, credentials)
      if (await isServing(deps, wanted, signal)) return adopt(deps, wanted, signal)
    }
    return start(deps, { credentials, former }, signal)
  })
}

interface Desired {
  readonly container: DesiredContainer
  /** Files of the configuration directory by name. */
  readonly files: Readonly<Record<string, string>>
}

async function desiredOn({ port, adminPort }: Ports, deps: BringUpDeps, { user: admin }: AdminCredentials): Promise<Desired> {
  const { directory, paths, engine, serves, capacity, size, stopSignal } = deps
  const outputAt = engine.outputAt(serves.motor, undefined)
  const access = deps.access()
  const inside = adminPort === undefined ? undefined : engine.adminPort?.(serves.version)
  const files = engine.files({ admin, adminPort: inside, capacity, size, outputAt, tls: false, access })
  const network = networkName(directory)
  const container = {
    paths,
    engine,
    image: serves.imageId,
    user: deps.user,
    port,
    adminPort: adminPort === undefined || inside === undefined ? undefined : { published: adminPort, inside },
    outputAt,
    stopSignal,
    network,
    labels: {},
    memoryMiB: memoryOf(size),
  }
  const own = {
    [labels.installation]: installationOf(directory),
    [labels.server]: deps.server,
    [labels.data]: paths.data,
    [labels.config]: configHash(container, access ? without(files, engine.accessFile) : files),
  }
  return { container: { ...container, labels: own }, files }
}

const Inspected = z.object({
  State: z.object({ Status: z.string() }),
  Config: z.object({ Labels: z.record(z.string(), z.string()) }),
})

/** Whether the server's container runs, and is as desired. */
async function isServing({ docker, paths }: BringUpDeps, { container }: Desired, signal: AbortSignal): Promise<boolean> {
  const name = containerNames(paths).serve
  if ((await findContainers(docker, [byName(name)], signal)).length === 0) return false
  const text = await docker.run(['container', 'inspect', '--format', '{{json .}}', name], { signal })
  const { State: state, Config: config } = Inspected.parse(JSON.parse(text))
  return state.Status === 'running' && config.Labels[labels.config] === container.labels[labels.config]
}

const without = (files: Desired['files'], name: string | undefined): Desired['files'] =>
  Object.fromEntries(Object.entries(files).filter(([file]) => file !== name))

async function adopt(deps: BringUpDeps, { container, files }: Desired, signal: AbortSignal): Promise<Supervised> {
  const { docker, paths, logger } = deps
  const name = containerNames(paths).serve
  await writeCertificate(deps)
  await writeConfig(deps, files)
  await docker.run(['kill', '--signal', deps.reload, name], { signal })
  logger.info({ container: name, port: container.port }, 'database server adopted')
  return serving(deps, { port: container.port, adminPort: container.adminPort?.published })
}

interface Start {
  readonly credentials: AdminCredentials
  readonly former: ServerRecord | undefined
}

async function start(deps: BringUpDeps, { credentials, former }: Start, signal: AbortSignal): Promise<Supervised> {
  const { docker, paths, serves, user, logger } = deps
  await removeContainers(deps)
  const made = former ? madeBy(former) : serves.version
  assertSameSeries({ family: partsOf(serves.motor).family, made, offered: serves.version })
  const hasAdminPort = deps.engine.adminPort?.(serves.version) !== undefined
  const ports = await choosePorts({ listen: LOOPBACK, hasAdminPort, former, reserved: await deps.reservedPorts() })
  const desired = await desiredOn(ports, deps, credentials)
  // Before any data: the record decides which runtime a server belongs to.
  await writeRecord(paths, {
    binaries: `${RECORD_PREFIX}${serves.image}`,
    version: serves.version,
    made,
    listen: LOOPBACK,
    ...ports,
    uid: user.uid,
  })
  await writeFiles(deps, desired)
  await initialise(deps, desired.container, { credentials, signal })
  await makeNetwork(deps, signal)
  await docker.run(serveArgs(desired.container), { signal })
  logger.info(
    { container: containerNames(paths).serve, port: ports.port, version: serves.version, image: serves.image },
    'database server started',
  )
  return serving(deps, ports)
}

/** The client ends with the container. It outlives us as the container does, and then ends with it, too. */
function serving({ docker, paths }: BringUpDeps, ports: Ports): Supervised {
  const exited = docker.run(['wait', containerNames(paths).serve], { timeoutMs: 0 }).catch(() => undefined)
  return { ...ports, exited }
}

/** Stops and removes the containers of a server. @throws MooringError `docker_failed` */
export async function removeContainers({ docker, paths }: Pick<BringUpDeps, 'docker' | 'paths'>): Promise<void> {
  const names = Object.values(containerNames(paths))
  await stopAndRemove(docker, await findContainers(docker, names.map(byName)))
}

/** Filter of `docker container ls` for exactly one name. */
const byName = (name: string): string => `name=^/${name}$`

/** Returns the ids of the containers, running or not, that one of the filters selects. @throws MooringError `docker_failed` */
export async function findContainers(
  docker: DockerClient,
  filters: readonly string[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const selected = filters.flatMap((filter) => ['--filter', filter])
  const ids = await docker.run(['container', 'ls', '--all', '--quiet', ...selected], { signal })
  return ids.split('\n').filter((id) => id !== '')
}

/** Stops containers, cleanly if they can, and removes them. @throws MooringError `docker_failed` */
export async function stopAndRemove(docker: DockerClient, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await docker.run(['stop', '-t', `${STOP_S}`, ...ids])
  await docker.run(['rm', '--force', '--volumes', ...ids])
}

async function writeFiles(deps: BringUpDeps, { files }: Desired): Promise<void> {
  const { paths, user } = deps
  await makeDirectories(paths, user)
  for (const path of [paths.data, paths.certificate, paths.admin, paths.output]) {
    await mkdir(path, { recursive: true, mode: 0o700 })
    await chown(path, user.uid, user.gid)
  }
  await writeConfig(deps, files)
  await writeFile(paths.passwd, passwdFor(user))
  await chmod(paths.passwd, 0o644)
  await writeCertificate(deps)
}

async function writeConfig({ paths }: Pick<BringUpDeps, 'paths'>, files: Desired['files']): Promise<void> {
  for (const [name, content] of Object.entries(files)) await writeDurably(join(paths.config, name), content, { mode: 0o644 })
}

async function writeCertificate({ paths, user, engine, certificate }: BringUpDeps): Promise<void> {
  const { certificate: shown, key, ca } = await certificate(engine.key)
  for (const [name, content] of Object.entries({ 'tls.crt': shown, 'tls.key': key, 'ca.crt': ca }))
    await writeDurably(join(paths.certificate, name), content, { mode: 0o600, owner: user })
}

interface Initialise {
  readonly credentials: AdminCredentials
  readonly signal: AbortSignal
}

async function initialise(
  { docker, paths, engine, user }: BringUpDeps,
  container: DesiredContainer,
  { credentials, signal }: Initialise,
) {
  const secret = join(paths.admin, 'password')
  await writeDurably(secret, credentials.password, { mode: 0o600, owner: user })
  try {
    // Recovery from a crash is part of it, and has no time limit.
    await docker.run(initialiseArgs(container), { signal, timeoutMs: 0 })
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof MooringError && cause.message.startsWith(REFUSED))
      throw new MooringError(OTHER_SERIES, cause.message.slice(REFUSED.length), { cause })
    const why = cause instanceof MooringError && engine.isShowable(cause.message) ? cause.message : 'its log has the reason'
    throw new MooringError('initialise_failed', `the data directory could not be made: ${why}`, { cause })
  } finally {
    await rm(secret, { force: true })
  }
}

async function makeNetwork({ docker, directory }: BringUpDeps, signal: AbortSignal): Promise<void> {
  const network = networkName(directory)
  const isThere = async () => (await docker.run(['network', 'ls', '--quiet', '--filter', `name=^${network}$`], { signal })) !== ''
  if (await isThere()) return
  await docker.run(networkArgs(network, installationOf(directory)), { signal }).catch(async (error: unknown) => {
    // Another server of the installation may have created it meanwhile.
    if (!(await isThere())) throw error
  })
}
