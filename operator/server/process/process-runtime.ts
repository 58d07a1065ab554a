import { rm } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { partsOf } from '../../../crds/motor.ts'
import type { ServerRuntime, ServerState } from '../runtime.ts'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { adminHost } from './address.ts'
import { type Binaries, BINARIES, binariesFor, type CompatibleMotors, servableMotors } from './programs/binaries.ts'
import { bringUp } from './bring-up.ts'
import type { Confinement } from './confinement/confinement.ts'
import { lastOutput } from './spawn/engine-log.ts'
import { installEngine } from './programs/installation.ts'
import { blankPaths, type ServerPaths, serverPaths, readRecords, type Record } from './files/paths.ts'
import type { EngineCertificate, EngineProgram } from './programs/program.ts'
import { PROGRAMS } from './programs/programs.ts'
import { withLock, IMMEDIATE_SHUTDOWN, CLEAN_SHUTDOWN, stopServing } from './spawn/serving.ts'
import { Supervisor } from './supervisor.ts'

export interface ProcessRuntimeDeps {
  /** Absolute path; each server has `<uid of the DatabaseServer>/` in it, and blanks are in `.blank/`. */
  readonly directory: string
  /** IP address that the servers listen on. Off loopback they require TLS. */
  readonly listen: string
  /** Host name or IP address for callers. */
  readonly publicHost: string
  /**
   * Certificate valid for `listen` and `publicHost`, requested at each start and adoption of a server. The operator verifies servers by
   * `ca`.
   */
  readonly certificate: () => EngineCertificate | Promise<EngineCertificate>
  readonly compatibleMotors: CompatibleMotors
  readonly logger: Logger
  /** Isolation of the servers from each other (confinement/). */
  readonly confinement: Confinement
}

/** Time for which a removal or stop waits for another process that holds the server's lock. */
const LOCK_MS = 500

/**
 * Creates the runtime of servers as child processes, for embedded mode. Servers outlive a killed process, are adopted by the next start,
 * and are shut down cleanly by `close` within 5 s. When started as root, they run as other users.
 */
export function createProcessRuntime(deps: ProcessRuntimeDeps): ServerRuntime {
  const { directory, listen, logger, confinement } = deps
  const supervisors = new Map<string, Supervisor>()
  const installations = new Map<string, Promise<string>>()
  const handlers: ((name: string) => void)[] = []
  let closed = false

  async function install(binaries: Binaries): Promise<string> {
    const installation = installations.get(binaries.package) ?? installEngine(binaries, { user: confinement.maker })
    installations.set(binaries.package, installation)
    installation.catch(() => installations.delete(binaries.package))
    return installation
  }

  async function reservedPorts(uid: string): Promise<ReadonlySet<number>> {
    const records = await readRecords(directory)
    return new Set([...records].flatMap(([other, record]) => (other === uid ? [] : [record.port])))
  }

  function supervise({ metadata, spec }: DatabaseServer, binaries: Binaries, program: EngineProgram): Supervisor {
    const paths = serverPaths(directory, metadata.uid)
    const log = logger.child({ server: metadata.name })
    return new Supervisor({
      host: deps.publicHost,
      admin: async () => {
        const host = adminHost(listen)
        return isLoopback(host) ? { host } : { host, ca: (await deps.certificate()).ca }
      },
      bringUp: async (credentials, signal) => {
        const user = await confinement.userOf(metadata.uid)
        return bringUp(
          {
            ...deps,
            ...{ paths, program, binaries, logger: log, user, capacity: spec.capacity },
            blank: blankPaths(directory, { binaries, program, admin: credentials.user }),
            install: () => install(binaries),
            reservedPorts: () => reservedPorts(metadata.uid),
          },
          credentials,
          signal,
        )
      },
      logIn: async (target) => program.logIn(target),
      lastOutput: () => lastOutput(paths, (line) => program.isShowable(line)),
      changed: () => {
        for (const handler of handlers) handler(metadata.name)
      },
      logger: log,
    })
  }

  async function ensure(server: DatabaseServer, credentials: Parameters<ServerRuntime['ensure']>[1]): Promise<ServerState> {
    if (closed) return { phase: 'absent' }
    const { motor } = server.spec
    const binaries = binariesFor(motor, deps.compatibleMotors)
    const program = binaries && PROGRAMS[binaries.family]
    if (!program) return { phase: 'failed', reason: 'MotorUnavailable', message: `no binaries of ${motor} are installed` }
    const supervisor = supervisors.get(server.metadata.uid) ?? supervise(server, binaries, program)
    supervisors.set(server.metadata.uid, supervisor)
    return supervisor.ensure(credentials)
  }

  async function remove({ metadata, spec }: DatabaseServer): Promise<boolean> {
    await supervisors.get(metadata.uid)?.release()
    supervisors.delete(metadata.uid)
    const paths = serverPaths(directory, metadata.uid)
    const program = PROGRAMS[partsOf(spec.motor).family]
    return withLock(paths.root, AbortSignal.timeout(LOCK_MS), async () => {
      if (program && !(await stopServing(paths, program, IMMEDIATE_SHUTDOWN))) return false
      await rm(paths.root, { recursive: true, force: true, maxRetries: 3 })
      logger.info({ server: metadata.name }, 'database server removed')
      return true
    })
  }

  /** Stops a server known only by its record: a former process may have left it, and no reconcile may have adopted it. */
  async function stop(paths: ServerPaths, { package: name }: Record): Promise<void> {
    const binaries = BINARIES.find((binaries) => binaries.package === name)
    const program = binaries && PROGRAMS[binaries.family]
    if (!program) return
    await withLock(paths.root, AbortSignal.timeout(LOCK_MS), () => stopServing(paths, program, CLEAN_SHUTDOWN))
  }

  async function close(): Promise<void> {
    closed = true
    await Promise.all([...supervisors.values()].map((supervisor) => supervisor.release()))
    supervisors.clear()
    const records = await readRecords(directory)
    const stops = [...records].map(([uid, record]) => stop(serverPaths(directory, uid), record))
    for (const result of await Promise.allSettled(stops)) {
      if (result.status === 'rejected') logger.error({ err: result.reason as unknown }, 'a database server was not stopped')
    }
  }

  return {
    motors: () => servableMotors(deps.compatibleMotors),
    ensure,
    remove,
    onChange: (handler) => void handlers.push(handler),
    close,
  }
}
