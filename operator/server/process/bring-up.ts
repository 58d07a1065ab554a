import { access, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { MooringError } from '../../../shared/errors.ts'
import type { AdminCredentials } from '../runtime.ts'
import type { Binaries } from './programs/binaries.ts'
import type { Confinement } from './confinement/confinement.ts'
import { giveTo } from './confinement/users.ts'
import { writeDurably } from './files/durable-files.ts'
import { keepLogsBounded, lastOutput } from './spawn/engine-log.ts'
import type { EngineUser } from './spawn/engine-user.ts'
import { findServing, withLock, CLEAN_SHUTDOWN, stopServing } from './spawn/serving.ts'
import { initialiseData } from './data/initialise.ts'
import { makeDirectories, type ServerPaths, type Record, writeRecord } from './files/paths.ts'
import { choosePort } from './address.ts'
import { mainProcess, type ProcessId, sendSignal, watchExit } from './spawn/proc.ts'
import type { EngineCertificate, EngineProgram } from './programs/program.ts'
import { reserveOf } from './files/reserve.ts'
import { openDirectory, spawnEngine, type Spawned } from './spawn/spawn-engine.ts'

/** Interval of polling a process that is not our child. */
const WATCH_MS = 1000

export interface BringUpDeps {
  readonly paths: ServerPaths
  /** Blank data directory from which servers of the version are copied. */
  readonly blank: ServerPaths
  readonly program: EngineProgram
  readonly binaries: Binaries
  /** Prepares the binaries. @returns their directory */
  readonly install: () => Promise<string>
  readonly confinement: Confinement
  /** Unix user of this server alone (confinement/). */
  readonly user: EngineUser
  /** Number of tenants that the server is sized for. */
  readonly capacity: number
  readonly listen: string
  readonly certificate: () => EngineCertificate | Promise<EngineCertificate>
  /** Ports of the other servers. */
  readonly reservedPorts: () => Promise<ReadonlySet<number>>
  readonly logger: Logger
}

/** Server whose process runs; it may not accept logins yet. */
export interface Serving {
  readonly process: ProcessId
  readonly port: number
  /** Resolves when the process ends. Never rejects. */
  readonly exited: Promise<unknown>
}

/**
 * Adopts the server that runs on a data directory, or starts one. A crash after any step is harmless: data gets its final name when it is
 * complete, the port is recorded before the start and the process after it, and a process is found even without its record.
 * @throws MooringError of the steps, and `engine_exited`; the signal's reason when it aborts
 */
export async function bringUp(deps: BringUpDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<Serving> {
  const installation = await deps.install()
  return withLock(deps.paths.root, signal, async () => {
    const { main, record } = await findServing(deps.paths, deps.program)
    if (main && record && isAsDesired(record, deps)) return adopt(deps, { main, record, admin: credentials.user }, signal)
    return start(deps, { installation, credentials, preferred: record?.port }, signal)
  })
}

function isAsDesired(record: Record, { binaries, listen, confinement, user }: BringUpDeps): boolean {
  const isProgram = record.package === binaries.package && record.version === binaries.version
  const isConfined = record.confinement === confinement.kind && record.uid === user.uid
  return isProgram && isConfined && record.listen === listen
}

interface Adoption {
  readonly main: ProcessId
  readonly record: Record
  readonly admin: string
}

async function adopt(deps: BringUpDeps, { main, record, admin }: Adoption, signal: AbortSignal): Promise<Serving> {
  const { paths, program, logger } = deps
  await writeRecord(paths, { ...record, process: main })
  // Renewed certificates, and settings that a reload can change, apply without ending a session.
  await configure(deps, record.port, admin)
  await sendSignal(main, program.signals.reload)
  logger.info({ serverPid: main.pid, port: record.port }, 'database server adopted')
  const exited = watchExit(main, WATCH_MS, signal).catch(() => undefined)
  keepLogsBounded(paths, exited, signal)
  return { process: main, port: record.port, exited }
}

interface Start {
  readonly installation: string
  readonly credentials: AdminCredentials
  readonly preferred: number | undefined
}

async function start(deps: BringUpDeps, { installation, credentials, preferred }: Start, signal: AbortSignal): Promise<Serving> {
  const { paths, program, binaries, listen, logger } = deps
  await stopServing(paths, program, CLEAN_SHUTDOWN)
  await makeDirectories(paths, deps.user)
  if (await exists(paths.data)) await takeOver(deps)
  else await initialiseData({ ...deps, maker: deps.confinement.maker, installation }, credentials, signal)
  const reserve = reserveOf(paths)
  if (await reserve.releaseWhenFull()) logger.warn('disk full: the reserve of a database server was released')
  const port = await choosePort({ host: listen, preferred, reserved: await deps.reservedPorts() })
  const confined = { confinement: deps.confinement.kind, uid: deps.user.uid }
  const record = { package: binaries.package, version: binaries.version, listen, port, ...confined }
  await configure(deps, port, credentials.user)
  await writeRecord(paths, record)
  signal.throwIfAborted()
  const { child, exited } = await serve(deps, installation)
  // The server outlives this process.
  child.unref()
  const main = child.pid === undefined ? undefined : await mainProcess(child.pid, exited)
  if (!main) {
    throw new MooringError('engine_exited', `it ended at once: ${await lastOutput(paths, (line) => program.isShowable(line))}`)
  }
  await writeRecord(paths, { ...record, process: main })
  logger.info({ serverPid: main.pid, port, version: binaries.version }, 'database server started')
  keepLogsBounded(paths, exited, signal)
  void reserve.keep(signal)
  return { process: main, port, exited }
}

/** Gives the server's user data of an older version or of another user; the former server's processes have ended by now. */
async function takeOver({ paths, user }: BringUpDeps): Promise<void> {
  if ((await lstat(paths.data)).uid !== user.uid) await giveTo(paths.data, user)
  await giveTo(paths.log, user)
}

/** Starts the server; `inherit` has the order of the descriptors in `at`. */
async function serve({ paths, program, user, confinement }: BringUpDeps, installation: string): Promise<Spawned> {
  await using data = await openDirectory(paths.data)
  await using config = await openDirectory(paths.config)
  await using log = await openDirectory(paths.log)
  const launcher = confinement.launcher(paths.view, installation)
  const inherit = [data, config, log]
  return await spawnEngine({ installation, command: program.serve, user, launcher, inherit, output: paths.early })
}

async function configure(deps: BringUpDeps, port: number, admin: string): Promise<void> {
  const { paths, program, listen, user, capacity, confinement } = deps
  const certificate = await deps.certificate()
  const { sharedMemory } = confinement
  for (const { name, content, secret } of program.configure({ listen, port, admin, capacity, certificate, sharedMemory })) {
    await writeDurably(join(paths.config, name), content, secret ? { mode: 0o600, owner: user } : { mode: 0o644 })
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
