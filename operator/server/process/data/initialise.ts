import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { MooringError } from '../../../../shared/errors.ts'
import type { AdminCredentials } from '../../runtime.ts'
import type { Binaries } from '../programs/binaries.ts'
import { copyBlank, keepBlank } from './blank.ts'
import type { Confinement } from '../confinement/confinement.ts'
import { giveTo } from '../confinement/users.ts'
import { syncDirectory, namelessFile } from '../files/durable-files.ts'
import { lastOutput } from '../spawn/engine-log.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import { makeEmpty, type ServerPaths } from '../files/paths.ts'
import type { Cloneable, EngineProgram, Initialisation } from '../programs/program.ts'
import { runToEnd, openDirectory } from '../spawn/spawn-engine.ts'

export interface InitialiseDeps {
  readonly paths: ServerPaths
  readonly blank: ServerPaths
  readonly binaries: Binaries
  readonly program: EngineProgram
  readonly installation: string
  /** User that creates the data directory. */
  readonly maker: EngineUser
  /** User that owns the finished data directory. */
  readonly user: EngineUser
  readonly logger: Logger
  readonly pathLauncher?: Confinement['pathLauncher']
}

/**
 * Creates the data directory with the admin in it. It gets its final name when it is complete. It is a copy of the blank of its version, if
 * there is one; otherwise it is created by the engine and becomes the blank.
 * @throws MooringError `initialise_failed`, with the program's last log lines
 */
export async function initialiseData(deps: InitialiseDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<void> {
  const { paths, program } = deps
  const made =
    (await isCopied(deps, credentials, signal)) ||
    ((await isMade(deps, credentials, signal)) && (await isKept(deps, program.cloneable, signal)))
  if (!made) {
    throw new MooringError(
      'initialise_failed',
      `the data directory could not be made: ${await lastOutput(paths, (line) => program.isShowable(line))}`,
    )
  }
  await giveTo(paths.unfinished, deps.user)
  await rename(paths.unfinished, paths.data)
  await syncDirectory(paths.root)
}

async function isCopied(deps: InitialiseDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<boolean> {
  const { cloneable } = deps.program
  return cloneable !== undefined && (await copyBlank({ ...deps, user: deps.maker, cloneable }, credentials, signal))
}

async function isMade(deps: InitialiseDeps, credentials: AdminCredentials, signal: AbortSignal): Promise<boolean> {
  const commands = deps.program.initialise(credentials.user)
  if (commands.length === 0) {
    await makeEmpty(deps.paths.unfinished, deps.maker)
    return true
  }
  for (const command of commands) {
    await makeEmpty(deps.paths.unfinished, deps.maker)
    if (!(await runs(deps, { command, credentials }, signal))) continue
    await deps.program.trim(deps.paths.unfinished)
    return true
  }
  return false
}

interface Run {
  readonly command: Initialisation
  readonly credentials: AdminCredentials
}

async function runs(deps: InitialiseDeps, { command, credentials }: Run, signal: AbortSignal): Promise<boolean> {
  const { paths, installation, maker: user } = deps
  await using data = await openDirectory(paths.unfinished)
  await using secret = await namelessFile(join(paths.root, 'password'), { text: `${credentials.password}\n`, user })
  const text = await command.input?.(installation)
  await using input = text === undefined ? undefined : await namelessFile(join(paths.root, 'input'), { text, user })
  const launcher = deps.program.needsPath ? deps.pathLauncher?.(user, installation) : undefined
  return await runToEnd({ installation, command, user, launcher, inherit: [data, secret], input, output: paths.early }, signal)
}

/** Makes the data directory durable, and stores it as the blank meanwhile, before any server runs on it. */
async function isKept(deps: InitialiseDeps, cloneable: Cloneable | undefined, signal: AbortSignal): Promise<boolean> {
  if (!cloneable) return true
  const { paths, installation, maker: user } = deps
  const kept = keepBlank({ ...deps, user, cloneable }, signal)
  try {
    await using data = await openDirectory(paths.unfinished)
    return await runToEnd({ installation, command: cloneable.flush, user, inherit: [data], output: paths.early }, signal)
  } finally {
    await kept
  }
}
