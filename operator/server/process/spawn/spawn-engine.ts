import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, type FileHandle, open } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import type { Launcher } from '../confinement/launchers.ts'
import type { EngineUser } from './engine-user.ts'
import { at, type Command } from '../programs/program.ts'

export interface Program {
  /** Absolute directory of the engine's files; `/` for a program of the system. */
  readonly installation: string
  readonly command: Command
  readonly user: EngineUser
  /** Launcher that confines the program; absent for a program that no tenant controls. */
  readonly launcher?: Launcher | undefined
  /** Descriptors of the program from 3 on. */
  readonly inherit: readonly FileHandle[]
  /** Standard input of the program, if any. */
  readonly input?: FileHandle | undefined
  /** File for its output. Not a pipe: the engine outlives us, and writing to a broken pipe would end it. */
  readonly output: string
}

/** Opens a directory to be inherited by an engine, which then needs no permission to traverse its path. */
export function openDirectory(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

export interface Spawned {
  readonly child: ChildProcess
  /** Resolves with its exit status (null after a signal). Never rejects. */
  readonly exited: Promise<number | null>
}

/**
 * Runs a program of an engine in its own process group: Ctrl-C in the terminal does not reach it. Its environment has nothing but the
 * installation's private shared libraries, where there are any.
 */
export async function spawnEngine({ installation, command, user, launcher, inherit, input, output }: Program): Promise<Spawned> {
  await using printed = await open(output, 'w', 0o600)
  const isOfSystem = isAbsolute(command.file)
  const environment = isOfSystem ? {} : await librariesOf(installation)
  const program = [
    isOfSystem ? command.file : join(installation, command.file),
    ...command.args.map((arg) => arg.replaceAll(at.installation, installation)),
  ]
  const [file = '', ...args] = launcher ? [launcher.file, ...launcher.args, ...withEnvironment(environment, program)] : program
  const child = spawn(file, args, {
    ...(launcher?.changesUser ? {} : user),
    cwd: '/',
    env: launcher ? { ...launcher.env } : environment,
    detached: true,
    stdio: [input?.fd ?? 'ignore', printed.fd, printed.fd, ...inherit.map((handle) => handle.fd)],
  })
  // Listened for at once: a program that cannot load its libraries ends before our files are closed.
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await once(child, 'spawn')
  return { child, exited }
}

/**
 * Runs a program until it ends; its output goes to `output`. @returns whether it succeeded
 * @throws the signal's reason when it aborts, with the program's whole process group killed
 */
export async function runToEnd(program: Program, signal: AbortSignal): Promise<boolean> {
  signal.throwIfAborted()
  const spawned = await spawnEngine(program)
  const status = await exitStatus(spawned, signal)
  signal.throwIfAborted()
  return status === 0
}

async function exitStatus({ child, exited }: Spawned, signal: AbortSignal): Promise<number | null> {
  // The child has not been waited for, so its pid cannot be reused yet.
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  signal.addEventListener('abort', kill, { once: true })
  if (signal.aborted) kill()
  try {
    return await exited
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

/** Environment by which the dynamic linker finds the libraries in `lib/` of an installation (ld.so(8)). */
export async function librariesOf(installation: string): Promise<Readonly<Record<string, string>>> {
  if (installation === '/') return {}
  const libraries = join(installation, 'lib')
  return access(libraries).then(
    () => ({ LD_LIBRARY_PATH: libraries }),
    () => ({}),
  )
}

/** Command that sets variables for a program alone: the programs of a launcher must not load an engine's libraries. */
function withEnvironment(environment: Readonly<Record<string, string>>, program: readonly string[]): readonly string[] {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  return variables.length === 0 ? program : ['/usr/bin/env', ...variables, ...program]
}
