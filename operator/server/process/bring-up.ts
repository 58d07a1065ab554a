import { access, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { KeyAlgorithm } from '../../certificates/local-ca.ts'
import { isLoopback } from '../../../crds/formats/address-list.ts'
import { type EngineSize, settingsKey } from '../../engines/size.ts'
import { MooringError } from '../../../shared/errors.ts'
import { assertSameSeries } from '../series.ts'
import type { EngineAccess } from '../access.ts'
import type { AdminCredentials } from '../runtime.ts'
import type { Binaries } from './programs/binaries.ts'
import type { Confinement } from './confinement/confinement.ts'
import { giveTo } from './confinement/users.ts'
import { writeDurably } from './files/durable-files.ts'
import { keepLogsBounded, lastOutput } from './spawn/engine-log.ts'
import type { EngineUser } from './spawn/engine-user.ts'
import { findServing, withLock, CLEAN_SHUTDOWN, stopServing } from './spawn/serving.ts'
import { initialiseData } from './data/initialise.ts'
import { type RestoreData, restoreData } from './data/restore.ts'
import { madeBy, makeDirectories, type ServerPaths, type Record, writeRecord } from './files/paths.ts'
import { choosePorts, type Ports } from './address.ts'
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
  /** Size of a dedicated server. A running server of another size is restarted. */
  readonly size?: EngineSize | undefined
  /** Whether the server archives its write-ahead log. A running server that does otherwise is restarted. */
  readonly archives?: boolean | undefined
  /** Fills the data directory of a new server with backups. Absent: a new server is empty. */
  readonly restore?: RestoreData | undefined
  readonly listen: string
  /** Returns the present access rules of a dedicated server. Absent: the server is not restricted. */
  readonly access?: () => EngineAccess | undefined
  readonly certificate: (key: KeyAlgorithm) => EngineCertificate | Promise<EngineCertificate>
  /** Ports of the other servers. */
  readonly reservedPorts: () => Promise<ReadonlySet<number>>
  readonly logger: Logger
}

/** Server whose process runs; it may not accept logins yet. */
export interface Serving extends Ports {
  readonly process: ProcessId
  /** Resolves when the process ends. Never rejects. */
  readonly exited: Promise<unknown>
}

/**
 * Adopts the server that runs on a data directory, or starts one. A crash after any step is harmless: data gets its final name when it is
 * complete, the port is recorded before the start and the process after it, and a process is found even without its record.
 * @throws MooringError of the steps, `other_series` and `engine_exited`; the signal's reason when it aborts
 */
export async function bringUp(deps: BringUpDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<Serving> {
  const installation = await deps.install()
  return withLock(deps.paths.root, signal, async () => {
    const { main, record } = await findServing(deps.paths, deps.program)
    if (main && record && isAsDesired(record, deps)) return adopt(deps, { main, record, credentials }, signal)
    return start(deps, { installation, credentials, former: record }, signal)
  })
}

/** Key of the settings that only a restart changes. */
const keyOf = ({ size, archives }: Pick<BringUpDeps, 'size' | 'archives'>): string =>
  settingsKey({ size, archive: archives ? {} : undefined })

function isAsDesired(record: Record, deps: BringUpDeps): boolean {
  const { binaries, listen, confinement, user } = deps
  const isProgram = record.binaries === binaries.id && record.version === binaries.version
  const isConfined = record.confinement === confinement.kind && record.uid === user.uid
  return isProgram && isConfined && record.listen === listen && (record.size ?? '') === keyOf(deps)
}

interface Adoption {
  readonly main: ProcessId
  readonly record: Record
  readonly credentials: AdminCredentials
}

async function adopt(deps: BringUpDeps, { main, record, credentials }: Adoption, signal: AbortSignal): Promise<Serving> {
  const { paths, program, logger } = deps
  await writeRecord(paths, { ...record, process: main })
  // Renewed certificates, and settings that a reload can change, apply without ending a session.
  await configure(deps, record, credentials)
  await sendSignal(main, program.signals.reload)
  logger.info({ serverPid: main.pid, port: record.port }, 'database server adopted')
  const exited = watchExit(main, WATCH_MS, signal).catch(() => undefined)
  attend(deps, exited, signal)
  return { process: main, port: record.port, adminPort: record.adminPort, exited }
}

/** Keeps the logs of a running server bounded, and does the work of its engine beside it, until the server exits or the signal aborts. */
function attend({ paths, program }: BringUpDeps, exited: Promise<unknown>, signal: AbortSignal): void {
  keepLogsBounded(paths, exited, signal)
  const ended = new AbortController()
  void exited.then(() => ended.abort())
  void program.attend?.(paths.data, AbortSignal.any([signal, ended.signal]))
}

interface Start {
  readonly installation: string
  readonly credentials: AdminCredentials
  readonly former: Record | undefined
}

async function start(deps: BringUpDeps, { installation, credentials, former }: Start, signal: AbortSignal): Promise<Serving> {
  const { paths, program, binaries, listen, logger } = deps
  await stopServing(paths, program, CLEAN_SHUTDOWN)
  await makeDirectories(paths, deps.user)
  const hasData = await exists(paths.data)
  // Data without a record are taken over by the present server.
  const made = hasData && former ? madeBy(former) : binaries.version
  assertSameSeries({ family: binaries.family, made, offered: binaries.version })
  if (hasData) await takeOver(deps)
  else if (deps.restore)
    await restoreData({ ...deps, ...deps.confinement, installation, restore: deps.restore }, credentials, signal)
  else await initialiseData({ ...deps, ...deps.confinement, installation }, credentials, signal)
  const reserve = reserveOf(paths)
  if (await reserve.releaseWhenFull()) logger.warn('disk full: the reserve of a database server was released')
  const ports = await choosePorts({ listen, hasAdminPort: hasAdminPort(deps), former, reserved: await deps.reservedPorts() })
  const confined = { confinement: deps.confinement.kind, uid: deps.user.uid }
  const record = { binaries: binaries.id, version: binaries.version, made, listen, ...ports, size: keyOf(deps), ...confined }
  await configure(deps, ports, credentials)
  await writeRecord(paths, record)
  await program.clear?.(paths.data)
  signal.throwIfAborted()
  const { child, exited } = await serve(deps, installation)
  // The server outlives this process.
  child.unref()
  const main = child.pid === undefined ? undefined : await mainProcess(child.pid, exited)
  if (!main) {
    throw new MooringError('engine_exited', `it ended at once: ${await lastOutput(paths, (line) => program.isShowable(line))}`)
  }
  await writeRecord(paths, { ...record, process: main })
  logger.info({ serverPid: main.pid, port: ports.port, version: binaries.version }, 'database server started')
  attend(deps, exited, signal)
  void reserve.keep(signal)
  return { process: main, ...ports, exited }
}

const hasAdminPort = ({ program, binaries: { version }, listen }: BringUpDeps): boolean =>
  program.hasAdminPort?.({ version, listen }) ?? false

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
  const launcher =
    confinement.launcher(paths.view, installation) ??
    (program.needsPath ? confinement.pathLauncher?.(user, installation) : undefined)
  const inherit = [data, config, log]
  return await spawnEngine({ installation, command: program.serve, user, launcher, inherit, output: paths.early })
}

async function configure(
  deps: BringUpDeps,
  { port, adminPort }: Ports,
  { user: admin, password }: AdminCredentials,
): Promise<void> {
  const { paths, program, listen, user, capacity, size, archives, confinement } = deps
  // On loopback nothing verifies the certificate.
  const certificate = await deps.certificate(isLoopback(listen) ? 'elliptic' : (program.key ?? 'elliptic'))
  const { sharedMemory } = confinement
  const desired = {
    listen,
    port,
    adminPort,
    admin,
    password,
    capacity,
    size,
    archives,
    certificate,
    sharedMemory,
    access: deps.access?.(),
  }
  for (const { name, content, secret } of program.configure(desired)) {
    await writeDurably(join(paths.config, name), content, secret ? { mode: 0o600, owner: user } : { mode: 0o644 })
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
