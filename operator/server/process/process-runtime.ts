import { rm } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { KeyAlgorithm } from '../../certificates/local-ca.ts'
import type { DatabaseServer } from '../../../crds/database-server.ts'
import { type Motor, partsOf } from '../../../crds/motor.ts'
import { settingsKey } from '../../engines/size.ts'
import type { AdminTarget } from '../../engines/engine.ts'
import type { ServerRuntime, ServerState } from '../runtime.ts'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { insidersOf, isPrivate, PRIVATE_ADDRESS, wayOf } from '../access.ts'
import { type AccessRules, createAccessRules } from './access-rules.ts'
import { adminHost } from './address.ts'
import {
  type Binaries,
  BINARIES,
  binariesFor,
  candidatesFor,
  type CompatibleMotors,
  isTlsTooOld,
  oldTlsAdvice,
  type OwnEngines,
  servableMotors,
} from './programs/binaries.ts'
import { type Backups, createBackupAgents } from './backup-agents.ts'
import { bringUp } from './bring-up.ts'
import type { Confinement } from './confinement/confinement.ts'
import { restoreOf } from './data/restore.ts'
import type { EngineUser } from './spawn/engine-user.ts'
import { librariesOf } from './spawn/spawn-engine.ts'
import type { ScratchProgram } from '../../../backup/postgresql/server.ts'
import { lastOutput } from './spawn/engine-log.ts'
import { installEngine } from './programs/installation.ts'
import { familyOfOwn } from './programs/own-engine.ts'
import { blankPaths, portsOfOthers, type ServerPaths, serverPaths, readRecords, type Record } from './files/paths.ts'
import type { EngineCertificate, EngineProgram } from './programs/program.ts'
import { PROGRAMS } from './programs/programs.ts'
import { withLockSoon, IMMEDIATE_SHUTDOWN, CLEAN_SHUTDOWN, RESTART, stopServing } from './spawn/serving.ts'
import { HANG_CHECK, type HangCheck, Supervisor } from './supervisor.ts'

export interface ProcessRuntimeDeps {
  /** Absolute path; each server has `<uid of the DatabaseServer>/` in it, and blanks are in `.blank/`. */
  readonly directory: string
  /** IP address that the servers listen on. Off loopback they require TLS. */
  readonly listen: string
  /** Host name or IP address for callers. */
  readonly publicHost: string
  /**
   * Certificate with such a key, valid for `listen` and `publicHost`, requested at each start and adoption of a server. The operator verifies
   * servers by `ca`.
   */
  readonly certificate: (key: KeyAlgorithm) => EngineCertificate | Promise<EngineCertificate>
  readonly compatibleMotors: CompatibleMotors
  /** Directory of the engines that `npm run engines` installs; that of the environment when absent. */
  readonly enginesCache?: string | undefined
  /** Server programs of the machine, which replace the installed ones of their motors. */
  readonly ownEngines?: OwnEngines | undefined
  readonly logger: Logger
  /** Repository of backups. Absent: no server has point-in-time recovery. */
  readonly backups?: Backups | undefined
  /** Isolation of the servers from each other (confinement/). */
  readonly confinement: Confinement
  /** Check of servers that may hang. Default: {@link HANG_CHECK}. */
  readonly hangCheck?: Omit<HangCheck, 'stop'> | undefined
}

/** Server under supervision. */
interface Supervised {
  readonly supervisor: Supervisor
  readonly rules: AccessRules
  /** See `wayOf`. */
  readonly way: string
}

/** Program in an installation of PostgreSQL, the only engine with point-in-time recovery. */
const POSTGRES = 'native/bin/postgres'

const needsBackups = ({ spec }: DatabaseServer): boolean => spec.archive !== undefined || spec.restore !== undefined

const NO_REPOSITORY = { phase: 'failed', reason: 'MotorUnavailable', message: 'there is no repository of backups' } as const

/**
 * Creates the runtime of servers as child processes, for embedded mode. Servers outlive a killed process, are adopted by the next start,
 * and are shut down cleanly by `close` within 5 s. When started as root, they run as other users.
 */
export function createProcessRuntime(deps: ProcessRuntimeDeps): ServerRuntime {
  const { directory, logger, confinement } = deps
  const supervised = new Map<string, Supervised>()
  /** Newest version of each server, by uid: a restart uses its size. */
  const newest = new Map<string, DatabaseServer>()
  const installations = new Map<string, Promise<string>>()
  const handlers: ((name: string) => void)[] = []
  const agents = deps.backups && createBackupAgents({ backups: deps.backups, logger })
  let closed = false

  const installed = { cache: deps.enginesCache, own: deps.ownEngines }
  const listenOf = (server: DatabaseServer): string => (isPrivate(server) ? PRIVATE_ADDRESS : deps.listen)

  /** Program of the scratch server of a restore drill, as confined as the servers. */
  async function scratchProgram(installation: string, user: EngineUser): Promise<ScratchProgram> {
    return {
      postgres: join(installation, POSTGRES),
      env: await librariesOf(installation),
      ...(process.getuid?.() === 0 && { user }),
      launcher: (root) => confinement.launcher(root, installation),
    }
  }

  async function install(binaries: Binaries): Promise<string> {
    const installation =
      installations.get(binaries.id) ??
      installEngine(binaries, {
        user: confinement.maker,
        cache: deps.enginesCache,
        links: join(directory, '.engines'),
      })
    installations.set(binaries.id, installation)
    installation.catch(() => installations.delete(binaries.id))
    return installation
  }

  function supervise(server: DatabaseServer, binaries: Binaries, program: EngineProgram): Supervised {
    const { metadata, spec } = server
    const paths = serverPaths(directory, metadata.uid)
    const log = logger.child({ server: metadata.name })
    const listen = listenOf(server)
    const way = insidersOf(server, listen)
    const rules = createAccessRules(server, {
      directory: paths.config,
      way,
      fileOf: (admin, access) => program.accessFile?.({ listen, admin, access }),
    })
    const supervisor = new Supervisor({
      host: isPrivate(server) ? PRIVATE_ADDRESS : deps.publicHost,
      admin: async () => {
        const host = adminHost(listen)
        const isPlain = isLoopback(program.tlsOnly ? listen : host)
        const source = isIPv4(host) ? program.adminSource : undefined
        return { host, source, ...(!isPlain && { ca: (await deps.certificate('elliptic')).ca }), ...way }
      },
      bringUp: async (credentials, signal) => {
        const user = await confinement.userOf(metadata.uid)
        return bringUp(
          {
            ...deps,
            paths,
            program,
            binaries,
            logger: log,
            user,
            capacity: spec.capacity,
            listen,
            access: () => rules.take(),
            size: newest.get(metadata.uid)?.spec.size,
            archives: newest.get(metadata.uid)?.spec.archive !== undefined,
            restore: restoreOf(server, deps.backups?.repository, (message) => supervisor.announce(message)),
            blank: blankPaths(directory, { binaries, program, admin: credentials.user }),
            install: () => install(binaries),
            reservedPorts: () => portsOfOthers(directory, metadata.uid),
          },
          credentials,
          signal,
        )
      },
      logIn: async (target) => program.logIn(target),
      hangCheck: program.mayHang ? { ...(deps.hangCheck ?? HANG_CHECK), stop: () => stopCleanly(paths, program) } : undefined,
      lastOutput: () => lastOutput(paths, (line) => program.isShowable(line)),
      changed: () => {
        for (const handler of handlers) handler(metadata.name)
      },
      logger: log,
    })
    return { supervisor, rules, way: wayOf(server) }
  }

  /**
   * Returns the supervision of a server; a new one when the server became private or public, or got or lost its SSH tunnel, which starts it again if it has to listen on
   * another address. Undefined once the runtime is closed.
   */
  async function supervisedOf(
    server: DatabaseServer,
    binaries: Binaries,
    program: EngineProgram,
  ): Promise<Supervised | undefined> {
    const { uid } = server.metadata
    const former = supervised.get(uid)
    if (former?.way === wayOf(server)) return former
    await former?.supervisor.release()
    if (closed) return undefined
    const begun = supervise(server, binaries, program)
    supervised.set(uid, begun)
    return begun
  }

  function stopCleanly(paths: ServerPaths, program: EngineProgram): Promise<boolean> {
    return withLockSoon(paths.root, () => stopServing(paths, program, CLEAN_SHUTDOWN))
  }

  function notServed(motor: Motor): string {
    const [near] = candidatesFor(motor, 'nearest', deps.ownEngines)
    if (!near) return `no binaries of ${motor} are known`
    return `${motor} is served only by version ${near.version}, with npm start -- --compatible-motors`
  }

  async function ensure(server: DatabaseServer, credentials: Parameters<ServerRuntime['ensure']>[1]): Promise<ServerState> {
    if (closed) return { phase: 'absent' }
    const { motor } = server.spec
    if (needsBackups(server) && !agents) return NO_REPOSITORY
    const binaries = await binariesFor(motor, deps.compatibleMotors, installed)
    const program = binaries && PROGRAMS[binaries.family]
    if (!program) return { phase: 'failed', reason: 'MotorUnavailable', message: notServed(motor) }
    if (isTlsTooOld(binaries, listenOf(server)))
      return { phase: 'failed', reason: 'MotorUnavailable', message: oldTlsAdvice(motor, binaries) }
    const under = await supervisedOf(server, binaries, program)
    if (!under) return { phase: 'absent' }
    newest.set(server.metadata.uid, server)
    under.rules.observe(server)
    const state = under.supervisor.ensure(credentials, settingsKey(server.spec))
    if (state.phase !== 'running') return state
    await under.rules.refresh(credentials.user)
    await archiveOf(server, { ...state.admin, ...credentials }, binaries)
    return state
  }

  /** Runs the backup agent of a server that archives, and ends that of any other. */
  async function archiveOf(server: DatabaseServer, target: AdminTarget, binaries: Binaries): Promise<void> {
    const { uid } = server.metadata
    const program = async () => scratchProgram(await install(binaries), await confinement.userOf(uid))
    await agents?.observe(server, { paths: serverPaths(directory, uid), target, engineVersion: binaries.version, program })
  }

  async function remove({ metadata, spec }: DatabaseServer): Promise<boolean> {
    await agents?.end(metadata.uid)
    await supervised.get(metadata.uid)?.supervisor.release()
    supervised.delete(metadata.uid)
    newest.delete(metadata.uid)
    const paths = serverPaths(directory, metadata.uid)
    const program = PROGRAMS[partsOf(spec.motor).family]
    return withLockSoon(paths.root, async () => {
      if (program && !(await stopServing(paths, program, IMMEDIATE_SHUTDOWN))) return false
      await rm(paths.root, { recursive: true, force: true, maxRetries: 3 })
      logger.info({ server: metadata.name }, 'database server removed')
      return true
    })
  }

  async function restart({ metadata, spec }: DatabaseServer): Promise<void> {
    const paths = serverPaths(directory, metadata.uid)
    const program = PROGRAMS[partsOf(spec.motor).family]
    if (!program) return
    await supervised
      .get(metadata.uid)
      ?.supervisor.restart(() => withLockSoon(paths.root, () => stopServing(paths, program, RESTART)))
  }

  /** Stops a server known only by its record: a former process may have left it, and no reconcile may have adopted it. */
  async function stop(paths: ServerPaths, { binaries: id }: Record): Promise<void> {
    const family = BINARIES.find((binaries) => binaries.id === id)?.family ?? familyOfOwn(id)
    const program = family && PROGRAMS[family]
    if (!program) return
    await stopCleanly(paths, program)
  }

  async function close(): Promise<void> {
    closed = true
    await agents?.close()
    await Promise.all([...supervised.values()].map(({ supervisor }) => supervisor.release()))
    supervised.clear()
    const records = await readRecords(directory)
    const stops = [...records].map(([uid, record]) => stop(serverPaths(directory, uid), record))
    for (const result of await Promise.allSettled(stops)) {
      if (result.status === 'rejected') logger.error({ err: result.reason as unknown }, 'a database server was not stopped')
    }
  }

  return {
    motors: () => servableMotors(deps.compatibleMotors, { ...installed, listen: deps.listen }),
    ensure,
    remove,
    restart,
    onChange: (handler) => void handlers.push(handler),
    close,
  }
}
