import { rm } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { type Motor, partsOf } from '../../../crds/motor.ts'
import { accessOf, insidersOf, wayOf } from '../access.ts'
import type { EngineFiles, EnginePod } from '../kubernetes/engine-pod.ts'
import { ENGINE_PODS } from '../kubernetes/engine-pods.ts'
import { portsOfOthers, readRecord, readRecords, serverPaths } from '../process/files/paths.ts'
import type { KeyAlgorithm } from '../../certificates/local-ca.ts'
import { type AccessRules, createAccessRules } from '../process/access-rules.ts'
import type { ConfigFile, EngineCertificate } from '../process/programs/program.ts'
import { PROGRAMS } from '../process/programs/programs.ts'
import { quotation } from '../process/spawn/engine-log.ts'
import type { EngineUser } from '../process/spawn/engine-user.ts'
import { withLockSoon } from '../process/spawn/serving.ts'
import { HANG_CHECK, Supervisor } from '../process/supervisor.ts'
import { sizeKey } from '../../engines/size.ts'
import type { AdminCredentials, ServerRuntime, ServerState } from '../runtime.ts'
import { bringUp, findContainers, RECORD_PREFIX, removeContainers, STOP_S, stopAndRemove } from './bring-up.ts'
import { containerNames, containerPaths, installationOf, labels, LOOPBACK, networkName } from './container.ts'
import { createDockerClient, type DockerClient } from './docker-client.ts'
import type { DockerEngine } from './docker-engine.ts'

/** Images of the machine's Docker, by the motor that each serves (docker-engine.ts). */
export type DockerEngines = ReadonlyMap<Motor, DockerEngine>

export interface DockerRuntimeDeps {
  /** Absolute path; each server has `<uid of the DatabaseServer>/` in it. */
  readonly directory: string
  readonly engines: DockerEngines
  /** Owner of a server's data and processes. @throws MooringError `no_engine_user` */
  readonly userOf: (server: string) => Promise<EngineUser>
  readonly certificate: (key: KeyAlgorithm) => EngineCertificate | Promise<EngineCertificate>
  readonly logger: Logger
  readonly docker?: DockerClient
}

export interface DockerRuntime extends ServerRuntime {
  /** Whether a server belongs here: its data were created in a container, or it has none and an image serves its motor. */
  owns(server: DatabaseServer): Promise<boolean>
  /** Kills all containers of the installation, as a crash would. Never rejects. */
  kill(): Promise<void>
}

/** Server under supervision. */
interface Supervised {
  readonly supervisor: Supervisor
  readonly rules: AccessRules
  /** See `wayOf`. */
  readonly way: string
}

function accessFileOf(engine: EnginePod, about: EngineFiles): ConfigFile | undefined {
  const name = engine.accessFile
  return name === undefined ? undefined : { name, content: engine.files(about)[name] ?? '' }
}

const NO_BACKUPS = 'the data of servers in containers of Docker are not backed up: leave pointInTimeRecovery and restoreFrom out'

/** Time in seconds for which a server with a statement that nothing ends may stop by itself. */
const RESTART_S = 2

/** Number of lines of a container's log in which the reason of a failure is searched. */
const LOG_LINES = 40

/**
 * Creates the runtime of servers in containers of the machine's Docker, for embedded mode. Containers outlive a killed process, are adopted
 * by the next start, and are stopped and removed by `close`; data stay in the data directory.
 */
export function createDockerRuntime(deps: DockerRuntimeDeps): DockerRuntime {
  const { directory, engines, logger, docker = createDockerClient() } = deps
  const supervised = new Map<string, Supervised>()
  /** Newest version of each server, by uid: a restart uses its size. */
  const newest = new Map<string, DatabaseServer>()
  const handlers: ((name: string) => void)[] = []
  let closed = false

  function supervise(server: DatabaseServer, serves: DockerEngine): Supervised | undefined {
    const { metadata, spec } = server
    const { family } = partsOf(spec.motor)
    const [engine, program] = [ENGINE_PODS[family], PROGRAMS[family]]
    if (!program) return undefined
    const paths = containerPaths(directory, metadata.uid)
    const log = logger.child({ server: metadata.name })
    const container = containerNames(paths).serve
    const way = { isPublished: true, ...insidersOf(server, undefined) }
    const rules = createAccessRules(server, {
      directory: paths.config,
      way,
      fileOf: (admin, access) => accessFileOf(engine, { admin, capacity: spec.capacity, tls: false, access }),
    })
    const supervisor = new Supervisor({
      host: LOOPBACK,
      admin: () => Promise.resolve({ host: LOOPBACK, ...(accessOf(server) && way) }),
      bringUp: async (credentials, signal) =>
        bringUp(
          {
            docker,
            directory,
            paths,
            server: metadata.name,
            serves,
            engine,
            capacity: spec.capacity,
            logger: log,
            stopSignal: program.signals.fast,
            reload: program.signals.reload,
            size: newest.get(metadata.uid)?.spec.size,
            user: await deps.userOf(metadata.uid),
            certificate: deps.certificate,
            access: () => rules.take(),
            reservedPorts: () => portsOfOthers(directory, metadata.uid),
          },
          credentials,
          signal,
        ),
      logIn: (target) => engine.logIn(target, () => undefined),
      hangCheck: program.mayHang
        ? { ...HANG_CHECK, stop: () => docker.run(['stop', '-t', `${STOP_S}`, container]).catch(() => undefined) }
        : undefined,
      lastOutput: async () => quotation(await docker.logs(container, LOG_LINES), (line) => engine.isShowable(line)),
      changed: () => {
        for (const handler of handlers) handler(metadata.name)
      },
      logger: log,
    })
    return { supervisor, rules, way: wayOf(server) }
  }

  /** Returns the supervision of a server; a new one, which adopts the container, when the server became private or public. */
  async function supervisedOf(server: DatabaseServer, serves: DockerEngine): Promise<Supervised | undefined> {
    const { uid } = server.metadata
    const former = supervised.get(uid)
    if (former?.way === wayOf(server)) return former
    await former?.supervisor.release()
    const begun = supervise(server, serves)
    if (closed || !begun) return undefined
    supervised.set(uid, begun)
    return begun
  }

  async function ensure(server: DatabaseServer, credentials: AdminCredentials): Promise<ServerState> {
    if (closed) return { phase: 'absent' }
    const { motor, archive, restore } = server.spec
    if (restore) return { phase: 'failed', reason: 'MotorUnavailable', message: NO_BACKUPS }
    const serves = engines.get(motor)
    if (!serves) {
      const message = `its data belong to a container: start with --engine ${motor}=docker`
      return { phase: 'failed', reason: 'MotorUnavailable', message }
    }
    const under = await supervisedOf(server, serves)
    if (!under) return { phase: 'failed', reason: 'MotorUnavailable', message: `no containers of ${motor} are known` }
    newest.set(server.metadata.uid, server)
    under.rules.observe(server)
    const state = under.supervisor.ensure(credentials, sizeKey(server.spec.size))
    if (state.phase !== 'running') return state
    await under.rules.refresh(credentials.user)
    return archive ? { ...state, held: { reason: 'Updating', message: NO_BACKUPS } } : state
  }

  async function remove({ metadata }: DatabaseServer): Promise<boolean> {
    await supervised.get(metadata.uid)?.supervisor.release()
    supervised.delete(metadata.uid)
    newest.delete(metadata.uid)
    const paths = containerPaths(directory, metadata.uid)
    return withLockSoon(paths.root, async () => {
      await removeContainers({ docker, paths })
      await rm(paths.root, { recursive: true, force: true, maxRetries: 3 })
      logger.info({ server: metadata.name }, 'database server removed')
      return true
    })
  }

  async function restart({ metadata }: DatabaseServer): Promise<void> {
    const { serve } = containerNames(containerPaths(directory, metadata.uid))
    await supervised.get(metadata.uid)?.supervisor.restart(() => docker.run(['stop', '-t', `${RESTART_S}`, serve]))
  }

  async function containers(): Promise<readonly string[]> {
    return findContainers(docker, [`label=${labels.installation}=${installationOf(directory)}`])
  }

  async function close(): Promise<void> {
    closed = true
    await Promise.all([...supervised.values()].map(({ supervisor }) => supervisor.release()))
    supervised.clear()
    try {
      if (engines.size === 0 && !(await hasContainers())) return
      await stopAndRemove(docker, await containers())
      await docker.run(['network', 'rm', networkName(directory)]).catch(() => undefined)
    } catch (err) {
      logger.error({ err }, 'containers of database servers were not stopped')
    }
  }

  /** Whether servers of a former start run in containers. */
  async function hasContainers(): Promise<boolean> {
    return [...(await readRecords(directory)).values()].some(({ binaries }) => binaries.startsWith(RECORD_PREFIX))
  }

  return {
    motors: () => Promise.resolve(new Map([...engines].map(([motor, { version }]) => [motor, { version }]))),
    async owns({ metadata, spec }) {
      const record = await readRecord(serverPaths(directory, metadata.uid))
      return record ? record.binaries.startsWith(RECORD_PREFIX) : engines.has(spec.motor)
    },
    ensure,
    remove,
    restart,
    onChange: (handler) => void handlers.push(handler),
    async kill() {
      if (engines.size === 0) return
      const ids = await containers().catch(() => [])
      if (ids.length > 0) await docker.run(['kill', ...ids]).catch(() => undefined)
    },
    close,
  }
}
